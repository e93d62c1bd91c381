import Fuzzing
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

/// Mutates response heads, line by line as libcurl passes them on, and compares two independent readings of the lines.
///
/// Fails if `HeadCollector` accepts a byte that may not be in a field, a folded framing field or two lengths, if it
/// takes a length or framing from a malformed line, or if it exceeds a limit. To see it fail, remove one of the checks
/// in `take`, `takeField`, `unfold` or `BodyFraming.end`.
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
        String(repeating: "b", count: 300), "\r\nContent-Length : 6", "\r\nTransfer-Encoding : chunked", "\r\nX Y: 1",
        "\r\n: x", "\r\nETag : \"1\"", "gzip, ", ", gzip", ", chunked", "\r\r\n", "\r\nno colon",
    ]

    /// Almost as many bytes as a head may have. This head is rare, because it takes long.
    private static let longHead =
        "HTTP/1.1 103 Early Hints\r\nX-Long: " + String(repeating: "a", count: 307_000) + "\r\n\r\n"

    @Test("A head that is accepted has one reading, within the limits")
    func heads() {
        let fuzzer = ByteFuzzer(name: "HeadCollector", corpus: Self.heads, words: Self.words)
        var accepted = 0
        let problem = fuzzer.firstViolation { bytes, generator in
            var reading = Reading()
            let start = generator.below(500) == 0 ? Array(Self.longHead.utf8) : []
            for line in Self.lines(start + bytes) {
                // libcurl repeats a request on a new connection if the old one was closed.
                if generator.below(200) == 0 { reading.restart() }
                if let problem = reading.take(line) { return problem }
                if reading.isRefused { return nil }
            }
            if reading.hasHead { accepted += 1 }
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

/// A collector, and the lines of the head that it has received so far.
private struct Reading {
    private var collector = HeadCollector()
    private var lines: [[UInt8]] = []
    private var byteCount = 0
    private var interimCount = 0
    private(set) var hasHead = false
    private(set) var isRefused = false

    mutating func restart() {
        guard !hasHead else { return collector.restart() }
        collector.restart()
        lines = []
    }

    /// Passes a line on. Returns a violated property, or `nil`.
    mutating func take(_ line: [UInt8]) -> String? {
        byteCount += line.count
        let step = line.withUnsafeBytes { collector.take($0) }
        switch step {
        case .more:
            if byteCount > HeadCollector.maximumBytes { return "more than 300 KiB" }
            if hasHead { return nil }
            lines.append(line)
            if lines.count > 1, line.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) { return endInterim() }
            return nil
        case .refused(let failure):
            isRefused = true
            return failure.message.utf8.contains(where: ASCII.isControl) ? "a control character in a message" : nil
        case .head(let head, let framing):
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
        let fields = head.fields.lines
        if fields.count > HeadCollector.maximumFields { return "\(fields.count) fields" }
        for field in fields {
            if !FieldValidation.isValidName(field.name) { return "the name '\(field.name)'" }
            if field.value.utf8.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) { return "a broken value" }
            if field.value.utf8.first == 0x20 || field.value.utf8.last == 0x20 { return "white space around a value" }
        }
        let second = SecondReading(lines.dropFirst())
        if second.foldsFraming { return "a folded framing field" }
        let isSame = fields.elementsEqual(second.fields) { $0.name == $1.name && $0.value == $1.value }
        return isSame ? second.framingViolation(head, framing) : "other fields: \(second.fields)"
    }
}

/// Reads the fields and the framing again, from the lines alone.
private struct SecondReading {
    private(set) var fields: [(name: String, value: String)] = []
    private(set) var foldsFraming = false
    private var mayBeCoded = false

    init(_ lines: some Sequence<[UInt8]>) {
        var isSkipped = false
        for line in lines.map(Self.withoutEnd) {
            if let first = line.first, Self.isBlank(first) {
                let rest = Self.trimmed(line[...])
                guard !isSkipped, !rest.isEmpty, let last = fields.popLast() else { continue }
                let name = ASCII.lowercased(last.name)
                foldsFraming = foldsFraming || ["content-length", "transfer-encoding"].contains(name)
                let value = FieldText.decode(rest)
                fields.append((last.name, last.value.isEmpty ? value : "\(last.value) \(value)"))
                continue
            }
            let name = line.prefix(while: ASCII.isTokenByte)
            let rest = line.dropFirst(name.count).drop(while: Self.isBlank)
            let lowercased = ASCII.lowercased(FieldText.decode(name))
            let isLoose = rest.count + name.count < line.count
            let isStrict = ["content-length", "transfer-encoding", "content-range"].contains(lowercased)
            isSkipped = name.isEmpty || rest.first != 0x3A || isLoose && isStrict
            if isSkipped {
                mayBeCoded = mayBeCoded || lowercased == "transfer-encoding"
            } else {
                fields.append((FieldText.decode(name), FieldText.decode(Self.trimmed(rest.dropFirst()))))
            }
        }
    }

    /// Compares the end of the body.
    func framingViolation(_ head: ResponseHead, _ framing: AttemptEnd.Framing) -> String? {
        let isBodyless = head.status == 204 || head.status == 304
        let lengths = members("content-length")
        let hasCoding = fields.contains { ASCII.lowercased($0.name) == "transfer-encoding" }
        if hasCoding {
            let codings = members("transfer-encoding").filter { !$0.isEmpty && $0 != "identity" }
            let others = codings.prefix { $0 != "chunked" }
            let known: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]
            if !known.isSuperset(of: others) { return "an unknown coding" }
            if codings.dropFirst(others.count).contains(where: { $0 != "chunked" }) { return "a coding after chunked" }
            let isChunked = others.count < codings.count
            if isChunked || isBodyless { return framing == .delimited ? nil : "the framing \(framing)" }
            if let problem = Self.violation(lengths) { return problem }
            return framing == .closed ? nil : "the framing \(framing)"
        }
        if let problem = Self.violation(lengths) { return problem }
        if mayBeCoded, lengths.isEmpty { return "a malformed transfer coding" }
        return (isBodyless || !lengths.isEmpty) == (framing == .delimited) ? nil : "the framing \(framing)"
    }

    private static func violation(_ lengths: [String]) -> String? {
        let numbers = lengths.map { Int64($0) ?? -1 }
        if numbers.contains(where: { $0 < 0 }) { return "a length that is no number" }
        return Set(numbers).count > 1 ? "two lengths" : nil
    }

    private func members(_ name: String) -> [String] {
        fields.filter { ASCII.lowercased($0.name) == name }.flatMap { field in
            Array(field.value.utf8).split(separator: 0x2C, omittingEmptySubsequences: false).map { member in
                ASCII.lowercased(String(decoding: Self.trimmed(member), as: UTF8.self))
            }
        }
    }

    /// A line without its end, with a space for every other CR.
    private static func withoutEnd(_ line: [UInt8]) -> [UInt8] {
        var line = line
        if line.last == 0x0A { line.removeLast() }
        if line.last == 0x0D { line.removeLast() }
        return line.map { $0 == 0x0D ? 0x20 : $0 }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        Array(bytes.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
