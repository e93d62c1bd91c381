import Fuzzing
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

/// Mutated response heads, line by line as libcurl passes them on, compared with a second reading of the same lines.
///
/// Fails if `HeadCollector` accepts a byte that may not be in a field, a folded framing field or two lengths, if it
/// exceeds a limit, or if `FieldCache` changes a result. To see it fail, remove one of the checks in `parse`, `unfold`
/// or `BodyFraming.end`.
@Suite("Fuzz: response heads") struct HeadFuzzTests {
    private static let heads = [
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 5\r\nETag: \"1\"\r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/5\r\nContent-Length: 5, 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: a\r\n\r\nX-Trailer: 1\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/2 200 \r\ncontent-length: 5\r\nx-a:\r\n folded\r\n\tagain\r\n\r\n",
        "HTTP/1.0 302 Found\r\nLocation: /x\r\n\r\n",
        "HTTP/1.1 204 No Content\n\n", "HTTP/3 304\r\nETag: W/\"1\"\r\n\r\n", "HTTP/1.1 407 P\r\n\r\n",
        "HTTP/1.1 200 OK\r\n" + (0..<99).map { "X-\($0): 1\r\n" }.joined() + "\r\n",
        String(repeating: "HTTP/1.1 102 P\r\n\r\n", count: 20) + "HTTP/1.1 200 OK\r\n\r\n",
    ]
    private static let words = [
        "\r\nContent-Length: 5", "\r\nContent-Length: 6", "\r\nContent-Length:\r\n 5", "\r\nTransfer-Encoding: chunked",
        "\r\nTransfer-Encoding: identity, chunked", "\r\n X: folded", "\r\n\t", "\r\nX-B: b", "\r", "\n", "\r\n\r\n",
        "HTTP/1.1 200 OK\r\n", "HTTP/1.1 101 S\r\n\r\n", "HTTP/1.1 100 C\r\n\r\n", "5", ", 5", "chunked", " : ",
        String(repeating: "b", count: 300),
    ]

    /// Almost all bytes that a head may have. Rare, because it takes long.
    private static let longHead =
        "HTTP/1.1 103 Early Hints\r\nX-Long: " + String(repeating: "a", count: 65_400) + "\r\n\r\n"

    @Test("A head that is accepted has one reading, within the limits, with and without the cache")
    func heads() {
        let cache = FieldCache()
        let fuzzer = ByteFuzzer(name: "HeadCollector", corpus: Self.heads, words: Self.words)
        var accepted = 0
        let problem = fuzzer.firstViolation { bytes, generator in
            var plain = Reading()
            var cached = Reading()
            let start = generator.below(500) == 0 ? Array(Self.longHead.utf8) : []
            for line in Self.lines(start + bytes) {
                // libcurl repeats a request on a new connection if the old one was closed.
                if generator.below(200) == 0 {
                    plain.restart()
                    cached.restart()
                }
                if let problem = plain.take(line, nil) { return problem }
                _ = cached.take(line, cache)
                if plain.result != cached.result { return "with the cache \(cached.result), without \(plain.result)" }
                if plain.isRefused { return nil }
            }
            if plain.hasHead { accepted += 1 }
            return nil
        }
        #expect(problem == nil)
        // A mutation that leaves no head to accept would test nothing.
        #expect(accepted > FuzzSettings.runs / 10)
    }

    /// Returns whole lines only: libcurl waits for the end of a line.
    private static func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: 0x0A) {
            lines.append(Array(rest[...end]))
            rest = rest[(end + 1)...]
        }
        return lines
    }
}

/// A collector, and the lines of the head that it is in.
private struct Reading {
    private var collector = HeadCollector()
    private var lines: [[UInt8]] = []
    private var byteCount = 0
    private var interimCount = 0
    private(set) var hasHead = false
    private(set) var isRefused = false
    /// The outcome of the last line, as text to compare.
    private(set) var result = ""

    mutating func restart() {
        guard !hasHead else { return collector.restart() }
        collector.restart()
        lines = []
    }

    /// Passes a line on. Returns a violated property, or `nil`.
    mutating func take(_ line: [UInt8], _ cache: FieldCache?) -> String? {
        byteCount += line.count
        let step = line.withUnsafeBytes { collector.take($0, cache) }
        switch step {
        case .more:
            result = "more"
            if byteCount > HeadCollector.maximumBytes { return "more than 64 KiB" }
            if hasHead { return nil }
            lines.append(line)
            if lines.count > 1, line == [0x0A] || line == [0x0D, 0x0A] { return endInterim() }
            return nil
        case .refused(let failure):
            result = "refused \(failure.kind)"
            isRefused = true
            return failure.message.utf8.contains(where: ASCII.isControl) ? "a control character in a message" : nil
        case .head(let head, let framing):
            result = "\(head.status) \(head.version) \(framing) \(head.fields.lines.map { "\($0.name)|\($0.value)" })"
            if hasHead { return "a second head" }
            hasHead = true
            return collector.isDone ? violation(head, framing) : "the collector is not done"
        }
    }

    private mutating func endInterim() -> String? {
        lines = []
        interimCount += 1
        return interimCount > HeadCollector.maximumInterimHeads ? "more than 20 interim heads" : nil
    }

    private func violation(_ head: ResponseHead, _ framing: AttemptEnd.Framing) -> String? {
        if !(200...999).contains(head.status) || head.status == 407 { return "the status \(head.status)" }
        let raw = lines.dropFirst()
        let fields = head.fields.lines
        if fields.count > HeadCollector.maximumFields { return "\(fields.count) fields" }
        if raw.count(where: { !Self.isFolded($0) }) != fields.count { return "\(fields.count) fields of other lines" }
        for field in fields {
            if !FieldValidation.isValidName(field.name) { return "the name '\(field.name)'" }
            if field.value.utf8.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) { return "a broken value" }
            if field.value.utf8.first == 0x20 || field.value.utf8.last == 0x20 { return "white space around a value" }
        }
        return framingViolation(Array(raw), head, framing)
    }

    /// The end of the body once more, from the lines alone.
    private func framingViolation(_ raw: [[UInt8]], _ head: ResponseHead, _ framing: AttemptEnd.Framing) -> String? {
        var lengths: Set<String> = []
        var isChunked = false
        for (index, line) in raw.enumerated() where !Self.isFolded(line) {
            let name = ASCII.lowercased(String(decoding: line.prefix { $0 != 0x3A }, as: UTF8.self))
            guard ["content-length", "transfer-encoding", "connection"].contains(name) else { continue }
            if index + 1 < raw.count, Self.isFolded(raw[index + 1]) { return "a folded framing field" }
            let value = Self.trimmed(Array(line.dropFirst(name.utf8.count + 1)))
            if name == "transfer-encoding" {
                isChunked = isChunked || ASCII.lowercased(String(decoding: value, as: UTF8.self)).contains("chunked")
            }
            guard name == "content-length" else { continue }
            for member in value.split(separator: 0x2C, omittingEmptySubsequences: false) {
                guard let number = Int64(String(decoding: Self.trimmed(Array(member)), as: UTF8.self)), number >= 0
                else { return "a length that is no number" }
                lengths.insert("\(number)")
            }
        }
        if lengths.count > 1 || isChunked && !lengths.isEmpty { return "two lengths" }
        let hasEnd = isChunked || !lengths.isEmpty || head.status == 204 || head.status == 304
        return hasEnd == (framing == .delimited) ? nil : "the framing \(framing)"
    }

    private static func isFolded(_ line: [UInt8]) -> Bool { line.first == 0x20 || line.first == 0x09 }

    private static func trimmed(_ line: [UInt8]) -> [UInt8] {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A }
        return Array(line.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
