import Testing
import TowlineCore

@Suite("Fuzz: names, digests and texts")
struct TextFuzzTests {
    private static let names = [
        "a.zip", "../../.ssh/authorized_keys", "C:\\x", ".bashrc", "-rf", "CON.txt", "photo\u{202E}gpj.exe",
        "a.tow-journal",
        "e\u{301}\u{302}.é", "COM¹", String(repeating: "日", count: 90) + ".tar.gz",
        String(repeating: "a", count: 234) + ".zip",
        "x" + String(repeating: "\u{301}", count: 200), String(repeating: "🇩🇪", count: 40),
    ]
    private static let nameWords = [
        "/", "\\", ":", ".", "-", " ", ".tow", ".tow-journal", "CON", "nul", "LPT1", "\u{3000}", "\u{A0}", "~",
    ]

    @Test("A safe name keeps every rule, and making it safe again changes nothing")
    func safeFileName() {
        Fuzzer(name: "SafeFileName", corpus: Self.names, words: Self.nameWords).run { text, _ in
            guard let name = SafeFileName.make(text) else { return nil }
            if SafeFileName.make(name).map({ $0.utf8.elementsEqual(name.utf8) }) != true {
                return "not stable: \(name)"
            }
            return Self.violation(name)
        }
    }

    @Test("Every name that a server proposes becomes a safe name")
    func contentDisposition() throws {
        let corpus = [
            "attachment; filename=\"a b.zip\"; filename*=UTF-8''%e2%82%ac%20rates", "inline; filename=a.txt",
            "attachment; filename*=iso-8859-1'en'%A3", "attachment; filename=\"../\\\"x\\\\y\"", "filename=C:\\x",
        ]
        let words = ["filename=", "filename*=", "; ", "UTF-8''", "%2f", "%5c", "%c2%9b", "\"", "attachment"]
        Fuzzer(name: "ContentDisposition", corpus: corpus, words: words).run { text, _ in
            let fields = HTTPFields([("Content-Disposition", text)])
            if ContentDisposition.fileName(fields)?.isEmpty == true { return "empty" }
            return SafeFileName.suggested(by: fields).flatMap(Self.violation)
        }
    }

    private static let digestCorpus = [
        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:, md5=:1B2M2Y8AsgTpgAmY7PhCfg==:;a=1",
        "x=(a \"b\" :AA==:;q=1);r, sha=:2jmj7l5rSw0yVb/vlWAYkK/YBwk=:", "md5=1B2M2Y8AsgTpgAmY7PhCfg==,crc32c=n03x6A==",
        "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "crc32c=a72a4df", "1B2M2Y8AsgTpgAmY7PhCfg==",
    ]

    @Test("Digests are sorted, each once, and a 206 never proves more than a 200")
    func digests() {
        let names = ["Repr-Digest", "Content-Digest", "Digest", "Content-MD5", "x-goog-hash", "x-amz-checksum-sha256"]
        let words = ["sha-256=:", "md5=", ":", "(", ")", ";a", "?1", "=="]
        Fuzzer(name: "DigestFields", corpus: Self.digestCorpus, words: words).run { text, generator in
            let fields = HTTPFields([
                (names[generator.below(names.count)], text), (names[generator.below(names.count)], text),
            ])
            let partial = ResponseHead(status: 206, fields: fields)
            let full = ResponseHead(status: 200, fields: fields)
            let found = DigestFields.wholeFile(full)
            let strengths = found.map(\.checksum.algorithm.strength)
            if strengths != strengths.sorted(by: >) { return "not sorted" }
            if Set(found).count != found.count { return "twice the same" }
            if !Set(DigestFields.wholeFile(partial).map(\.checksum)).isSubset(of: found.map(\.checksum)) {
                return "a 206 proves more"
            }
            return Set(DigestFields.content(partial)).isSubset(of: DigestFields.content(full))
                ? nil : "a 206 proves more"
        }
    }

    @Test("Base 64 has one spelling")
    func base64() {
        let corpus = ["", "Zg==", "Zm8=", "Zm9v", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="]
        Fuzzer(name: "Base64", corpus: corpus, words: ["=", "==", "A", "/", "+", "Zm9v"]).run { text, _ in
            guard let bytes = Base64.decoded(Array(text.utf8)) else { return nil }
            return Self.encoded(bytes) == text ? nil : "read as \(bytes)"
        }
    }

    @Test("A parsed checksum is printed and parsed again")
    func checksum() {
        let corpus = [
            "md5:d41d8cd98f00b204e9800998ecf8427e", "CRC-32C:E3069283", "sha-256:" + String(repeating: "0f", count: 32),
        ]
        Fuzzer(name: "Checksum", corpus: corpus, words: [":", "sha1", "-", "00"]).run { text, _ in
            guard let checksum = try? Checksum(parsing: text) else { return nil }
            if !ASCII.lowercased(text).hasSuffix(checksum.hex) { return "read as \(checksum)" }
            return (try? Checksum(parsing: checksum.description)) == checksum ? nil : "not read back"
        }
    }

    @Test("Text for a terminal cannot control the terminal, and fits")
    func terminalSafeText() {
        let corpus = [
            "plain", "\u{1B}]0;x\u{7}", "日本語 e\u{301} 👨‍👩‍👧 🇩🇪", "a\r\nb", "\u{202E}abc\u{2069}", "\u{E0041}\u{2028}",
        ]
        Fuzzer(name: "TerminalSafeText", corpus: corpus, words: ["\u{9B}", "\u{200D}", "\u{FE0F}", "\u{1112}\u{1161}"])
            .run {
                text, generator in
                let safe = TerminalSafeText.make(text)
                if let bad = safe.unicodeScalars.first(where: Self.steers) { return "holds \(bad.value)" }
                if !TerminalSafeText.make(safe).utf8.elementsEqual(safe.utf8) { return "not stable" }
                let width = generator.below(12)
                let cut = TerminalSafeText.make(text, width: width)
                if TerminalSafeText.displayWidth(cut) > width { return "wider than \(width): \(cut)" }
                return cut == safe || cut.isEmpty || cut.hasSuffix("…") ? nil : "cut without a mark: \(cut)"
            }
    }

    @Test("Numbers of bytes: printing and reading agree to half a tenth")
    func byteCount() {
        Fuzzer(
            name: "ByteCountText", corpus: ["10M", "1.5G", "500KiB", "7.999999999E", "0"],
            words: ["K", "iB", ".", "9", "E"]
        ).run {
            text, generator in
            if let count = try? ByteCountText.parse(text), count < 0 { return "negative" }
            let count = Int64(truncatingIfNeeded: generator.next() >> UInt64(generator.below(64)))
            let printed = ByteCountText.format(count)
            _ = DurationText.format(.seconds(count))
            guard count >= 0, printed != "8.0 EiB" else { return nil }
            guard let read = try? ByteCountText.parse(printed.filter { $0 != " " }) else {
                return "\(printed) is not read back"
            }
            return (read - count).magnitude <= count.magnitude / 20 + 1 ? nil : "\(count) is printed as \(printed)"
        }
    }

    /// Returns the rule of `SafeFileName` that a name breaks; `nil` if the name is safe.
    private static func violation(_ name: String) -> String? {
        let scalars = name.unicodeScalars
        let byteCount = ByteText.encode(name).count
        if name.isEmpty || byteCount > 239 { return "\(byteCount) bytes" }
        if scalars.contains(where: { "/\\<>:\"|?*".unicodeScalars.contains($0) }) {
            return "a reserved character in \(name)"
        }
        if scalars.contains(where: steers) || hasLooseJoiner(Array(scalars)) { return "a hidden character in \(name)" }
        guard let first = scalars.first, let last = scalars.last else { return "empty" }
        if first == "." || first == "-" || first.properties.isWhitespace { return "begins with \(first)" }
        if last == "." || last.properties.isWhitespace { return "ends with \(last)" }
        let base = name.split(separator: ".", omittingEmptySubsequences: false)[0].uppercased()
        if ["CON", "PRN", "AUX", "NUL", "COM1", "LPT1"].contains(base) { return "the device \(name)" }
        return name.hasSuffix(".tow") || name.hasSuffix(".tow-journal") ? "one of our own names" : nil
    }

    /// Returns whether a joiner is not between two characters outside ASCII, and so joins nothing.
    private static func hasLooseJoiner(_ scalars: [Unicode.Scalar]) -> Bool {
        let isJoiner = scalars.map { $0 == "\u{200C}" || $0 == "\u{200D}" }
        return scalars.indices.contains { index in
            let neighbours = [index - 1, index + 1]
            return isJoiner[index]
                && !neighbours.allSatisfy { scalars.indices.contains($0) && !scalars[$0].isASCII && !isJoiner[$0] }
        }
    }

    private static func steers(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF,
            0xE0000...0xE007F:
            true
        default: false
        }
    }

    private static func encoded(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let padded = Array(group) + [UInt8](repeating: 0, count: 3 - group.count)
            let bits = Int(padded[0]) << 16 | Int(padded[1]) << 8 | Int(padded[2])
            for digit in 0..<4 {
                text.append(digit <= group.count ? alphabet[bits >> (18 - 6 * digit) & 63] : "=")
            }
        }
        return text
    }
}
