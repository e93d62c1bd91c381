import Testing
import TowlineCore

@Suite("Fuzz: URLs")
struct URLFuzzTests {
    private static let corpus = [
        "http://example.com/", "https://user:p%40ss@example.com:8443/a/b/../c.zip?x=1&sig=canary#frag",
        "http://[2001:db8::192.0.2.1]:80/%2e%2e/%2f", "HTTP://EXAMPLE.com.:0080", "http://bücher.example/é?ü",
        "https://h/a?X-Amz-Signature=canary&X-Amz-Credential=canary;token=canary", "http://a@b@c/d@e",
        "http://127.1/\\x",
        "http://h?@x/y", "http://h#@x/y", "http://xn--bcher-kva.example/ a b ",
    ]
    private static let words = [
        "http://", "https://", "://", "//", "/../", "/./", "/..", "/.", "\\", "@", ":", ":80", ":443", ":0", ":65535",
        ":65536",
        "[::1]", "[", "]", "%25", "%2f", "%5c", "#", "?", "&", "token=", "／", "。", "＠", "℀", "ß", "İ", "xn--",
        "example.com",
    ]

    @Test("The parsed URL is the URL that is sent, for every parser")
    func parsing() {
        Fuzzer(name: "HTTPURL", corpus: Self.corpus, words: Self.words).run { text, _ in
            switch Result(catching: { () throws(TowlineError) in try HTTPURL(parsing: text) }) {
            case .failure(let error):
                if error.code != .unusableURL { return "refused as \(error.code)" }
                return error.message.utf8.contains(where: ASCII.isControl)
                    ? "the message holds a control character" : nil
            case .success(let url):
                guard let read = Self.authority(of: text, backslashEnds: false), Self.names(read.host, url.host) else {
                    return "the host was \(url.host)"
                }
                return Self.violation(url)
            }
        }
    }

    @Test("References stay at their origin unless they name another")
    func resolving() throws {
        let bases = try Self.corpus.map { try HTTPURL(parsing: $0) }
        let references = [
            "g", "../g", "./", "?y", "#s", "//h/x", "https://u:p@h/x", "/a/b", "g;x=1/../y", "..", "file:///x", "",
            " /x ", "/\\h",
            "a:b", "///x", "https://h/y?z", "https://h/y/../z",
        ]
        Fuzzer(name: "HTTPURL.resolving", corpus: references, words: Self.words).run { text, generator in
            let base = bases[generator.below(bases.count)]
            let result = Result(catching: { () throws(TowlineError) in try base.resolving(text) })
            switch result {
            case .failure(let error):
                if error.code != .redirectRefused { return "refused as \(error.code)" }
                return error.message.utf8.contains(where: ASCII.isControl)
                    ? "the message holds a control character" : nil
            case .success(let url):
                let trimmed = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
                let namesAuthority =
                    trimmed.starts(with: "//".utf8) || ASCII.lowercased(String(Substring(trimmed))).hasPrefix("http")
                if !namesAuthority, url.origin != base.origin || url.userInfo != base.userInfo {
                    return "left for \(url.origin)"
                }
                return Self.violation(url)
            }
        }
    }

    private static func violation(_ url: HTTPURL) -> String? {
        let text = url.requestText
        if text.utf8.count > HTTPURL.maximumByteCount { return "too long" }
        if !url.pathAndQuery.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"<>\\^`{|}#".utf8.contains($0) }) {
            return "\(text) holds what may not go out"
        }
        if !url.pathAndQuery.hasPrefix("/") { return "the path has no slash" }
        if url.path.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) {
            return "dot segments are left"
        }
        guard let again = try? HTTPURL(parsing: text), again.origin == url.origin,
            again.pathAndQuery == url.pathAndQuery, again.userInfo == nil
        else { return "\(text) is read otherwise" }
        for backslashEnds in [false, true] {
            guard let read = authority(of: text, backslashEnds: backslashEnds), read.host == url.host,
                read.port ?? url.scheme.defaultPort == url.port
            else { return "\(text) has another host" }
        }
        guard let shown = try? HTTPURL(parsing: url.withoutSecrets) else { return "\(url) is no URL" }
        if shown.withoutSecrets != url.withoutSecrets || shown.userInfo != nil { return "\(url) has secrets left" }
        return nil
    }

    /// Parses the authority independently: from `//` to the first delimiter, after the last `@`.
    private static func authority(of text: String, backslashEnds: Bool) -> (host: String, port: Int?)? {
        let bytes = Array(text.utf8)
        guard let slashes = bytes.indices.first(where: { bytes[$0...].starts(with: "//".utf8) }) else { return nil }
        let rest = bytes[(slashes + 2)...]
        let end = rest.firstIndex { "/?#".utf8.contains($0) || backslashEnds && $0 == 0x5C } ?? rest.endIndex
        let hostAndPort = rest[..<end].split(separator: 0x40, omittingEmptySubsequences: false).last ?? []
        var host = hostAndPort
        var port: Int?
        if let colon = hostAndPort.lastIndex(of: 0x3A), !hostAndPort[colon...].contains(0x5D) {
            host = hostAndPort[..<colon]
            port = Int(String(decoding: hostAndPort[(colon + 1)...], as: UTF8.self))
        }
        // White space at the end is not part of the URL if the text ends with the authority.
        while end == bytes.endIndex, let last = host.last, last == 0x20 || last == 0x09 { host.removeLast() }
        return (String(decoding: host, as: UTF8.self), port)
    }

    /// Returns whether `host` is the form in which the typed host is sent: in lower case and in ASCII, each label
    /// beyond ASCII in Punycode.
    private static func names(_ typed: String, _ host: String) -> Bool {
        guard host.utf8.allSatisfy({ $0 < 0x80 }) else { return false }
        if let percent = typed.firstIndex(of: "%") {
            // The zone of an IPv6 address, which is case-sensitive.
            let zone = typed[percent...].dropFirst(typed[percent...].hasPrefix("%25") ? 3 : 1)
            return host == typed[..<percent].lowercased() + "%25" + (zone == "]" ? "25]" : zone)
        }
        let labels = typed.lowercased().unicodeScalars.split(separator: ".", omittingEmptySubsequences: false)
        let encoded = host.unicodeScalars.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count == encoded.count else { return false }
        return zip(labels, encoded).allSatisfy { label, encoded in
            if label.allSatisfy(\.isASCII) { return label.elementsEqual(encoded) }
            let text = Substring(encoded)
            return text.hasPrefix("xn--") && fromPunycode(text.dropFirst(4)) == String(Substring(label))
        }
    }

    /// The text of a label in Punycode (RFC 3492 §6.2).
    private static func fromPunycode(_ label: Substring) -> String? {
        let bytes = Array(label.utf8)
        let hyphen = bytes.lastIndex(of: 0x2D)
        var scalars = bytes[..<(hyphen ?? 0)].map { Unicode.Scalar($0) }
        var rest = bytes[(hyphen.map { $0 + 1 } ?? 0)...]
        var (value, position, bias) = (0x80, 0, 72)
        while !rest.isEmpty {
            let start = position
            var (weight, place) = (1, 36)
            while true {
                guard weight < 1 << 32, let byte = rest.popFirst() else { return nil }
                let digit = ASCII.isDigit(byte) ? Int(byte) - 0x30 + 26 : Int(byte) - 0x61
                guard (0..<36).contains(digit) else { return nil }
                position += digit * weight
                let threshold = min(max(place - bias, 1), 26)
                if digit < threshold { break }
                weight *= 36 - threshold
                place += 36
            }
            let count = scalars.count + 1
            var delta = (position - start) / (start == 0 ? 700 : 2)
            delta += delta / count
            var steps = 0
            while delta > 455 { (delta, steps) = (delta / 35, steps + 36) }
            bias = steps + 36 * delta / (delta + 38)
            value += position / count
            guard let scalar = UInt32(exactly: value).flatMap(Unicode.Scalar.init) else { return nil }
            position %= count
            scalars.insert(scalar, at: position)
            position += 1
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
