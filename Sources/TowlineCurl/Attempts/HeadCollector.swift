internal import TowlineCore
internal import TowlineEngine

/// A parser that assembles the head of the final response from the lines that libcurl delivers, within limits.
///
/// Skips lines that are not fields, as browsers do. Strict wherever leniency could change the body: libcurl parses the
/// framing fields itself, line by line, so the collector refuses a head that libcurl would parse differently.
struct HeadCollector {
    /// The result of processing a header line, which tells the caller how to continue.
    enum Step {
        /// The header line was accepted, and more lines follow.
        case more
        /// The final head is complete. The second value is how the end of its body is marked.
        case head(ResponseHead, AttemptEnd.Framing)
        /// The response is refused: the caller must abort the request with this failure.
        case refused(TransportFailure)
    }

    /// The maximum size in bytes of a response's interim heads (1xx), final head and trailers together; a larger
    /// response is refused.
    static let maximumBytes = 300 * 1024
    /// The maximum number of fields in a response's interim heads, final head and trailers together; a response with
    /// more is refused.
    static let maximumFields = 5000
    /// The maximum number of interim heads (1xx) of a response; a response with more is refused.
    static let maximumInterimHeads = 20

    /// The section of the response (status line, fields or trailers) that the next header line belongs to.
    private enum Section {
        case statusLine
        case fields
        /// The final head is complete. Further lines are trailers, which Towline ignores (RFC 9110 §6.5.1 allows that).
        case done
    }

    private var state = Section.statusLine
    private var status = 0
    private var version = ResponseHead.Version.http1_1
    private var fields = HTTPFields()
    private var byteCount = 0
    /// The number of bytes of all heads (interim and final) of the current response. `Splicing` uses it to find the
    /// beginning of the body.
    private(set) var responseByteCount = 0
    private var fieldCount = 0
    private var interimHeadCount = 0
    /// `true` if the last line was skipped; its continuation lines (obs-fold, RFC 9112 §5.2) are then skipped too.
    private var skipsFolded = false
    /// `true` if a skipped line may have announced a transfer coding. Without another framing field, the response
    /// fails.
    private var mayBeCoded = false
    /// `true` to omit Content-Length from response heads (option `ConnectionOptions.ignoresLength`).
    private let ignoresLength: Bool

    init(ignoresLength: Bool = false) { self.ignoresLength = ignoresLength }

    /// Returns whether the final response head is complete. Further lines are trailers, which are ignored.
    var isDone: Bool { state == .done }

    /// Discards the lines of an incomplete head, but keeps the counts for the limits. Called before each request, since
    /// libcurl sends the request again over a new connection if a reused connection turns out to be dead.
    mutating func restart() {
        responseByteCount = 0
        guard state != .done else { return }
        state = .statusLine
        forgetFields()
    }

    private mutating func forgetFields() {
        fields = HTTPFields()
        (skipsFolded, mayBeCoded) = (false, false)
    }

    /// Processes the next header line of the response, including its end of line.
    mutating func take(_ raw: UnsafeRawBufferPointer) -> Step {
        byteCount += raw.count
        responseByteCount += raw.count
        guard byteCount <= Self.maximumBytes else {
            return Self.tooLarge(
                "the server sent more than 300 KiB of response headers; Towline accepts at most 300 KiB")
        }
        var count = raw.count
        if count > 0, raw[count - 1] == 0x0A { count -= 1 }
        if count > 0, raw[count - 1] == 0x0D { count -= 1 }
        let line = UnsafeRawBufferPointer(rebasing: raw[..<count])
        // Without an early exit: the vectorised loop over all bytes is faster.
        var broken: UInt8 = 0
        for byte in line { broken |= (byte == 0 ? 1 : 0) | (byte == 0x0D ? 2 : 0) | (byte == 0x0A ? 1 : 0) }
        guard broken != 0 else { return act(on: line) }
        // libcurl treats any line that begins with CR as the end of the head.
        let isEnd = line.allSatisfy { $0 == 0x0D }
        guard broken == 2, isEnd || line[0] != 0x0D else {
            return Self.malformed("the server sent an invalid response: a header line contains a CR or NUL byte")
        }
        if isEnd { return act(on: UnsafeRawBufferPointer(rebasing: line[..<0])) }
        // RFC 9112 §2.2: a single CR counts as a space.
        return line.map { $0 == 0x0D ? 0x20 : $0 }.withUnsafeBytes { act(on: $0) }
    }

    private mutating func act(on line: UnsafeRawBufferPointer) -> Step {
        switch state {
        case .done: return countField()
        case .statusLine: return takeStatusLine(line)
        case .fields: return line.isEmpty ? finish() : takeField(line)
        }
    }

    private mutating func countField() -> Step {
        fieldCount += 1
        guard fieldCount > Self.maximumFields else { return .more }
        return Self.tooLarge("the server sent more than 5000 response headers; Towline accepts at most 5000")
    }

    /// Parses the first line of a head: `status-line = HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112 §4).
    /// libcurl writes a line in the same form for HTTP/2, without the minor version.
    private mutating func takeStatusLine(_ line: UnsafeRawBufferPointer) -> Step {
        guard let space = line.firstIndex(of: 0x20), let version = Self.version(Self.part(of: line, 0..<space)) else {
            return Self.malformed("the server sent an invalid response: it does not begin with an HTTP status line")
        }
        let code = Self.part(of: line, space + 1..<line.count).prefix { $0 != 0x20 }
        guard code.count == 3, let status = Self.decimal(code), status >= 100 else {
            return Self.malformed("the server sent an invalid response: its first line has no valid HTTP status")
        }
        self.version = version
        self.status = Int(status)
        state = .fields
        return .more
    }

    private mutating func takeField(_ line: UnsafeRawBufferPointer) -> Step {
        if Self.isBlank(line[0]) { return unfold(line) }
        let nameEnd = line.firstIndex { !RequestFields.isTokenByte($0) } ?? line.count
        let colon = line[nameEnd...].firstIndex { !Self.isBlank($0) } ?? line.count
        let name = FieldText.decode(Self.part(of: line, 0..<nameEnd))
        skipsFolded = nameEnd == 0 || colon == line.count || line[colon] != 0x3A
        // A framing field with white space before the colon is skipped, as libcurl does.
        if colon > nameEnd, Self.isOne(of: Self.strictFields, name) { skipsFolded = true }
        if skipsFolded {
            if Self.isOne(of: ["transfer-encoding"], name) { mayBeCoded = true }
        } else {
            let value = Self.trimmed(Self.part(of: line, colon + 1..<line.count))
            fields.append(name: name, value: FieldText.decode(value))
        }
        return countField()
    }

    private static let strictFields = ["content-length", "transfer-encoding", "content-range"]

    private static func isOne(of names: [String], _ name: String) -> Bool {
        names.contains { HTTPFields.equalNames($0, name) }
    }

    /// Joins a continuation line to the field above it (obs-fold, RFC 9112 §5.2). Refuses folded framing fields:
    /// libcurl has parsed their first line alone and would find another body than Towline.
    private mutating func unfold(_ line: UnsafeRawBufferPointer) -> Step {
        let rest = FieldText.decode(Self.trimmed(line))
        guard !skipsFolded, !rest.isEmpty else { return .more }
        guard let last = fields.lines.last else {
            return Self.malformed("the server sent an invalid response: its first header line has no name")
        }
        guard !Self.isOne(of: ["content-length", "transfer-encoding"], last.name) else {
            return Self.malformed("the server sent an invalid response: it splits the header \(last.name) in two lines")
        }
        fields.replaceLastValue(by: last.value.isEmpty ? rest : "\(last.value) \(rest)")
        return .more
    }

    private mutating func finish() -> Step {
        defer { forgetFields() }
        if status < 200 {
            // 101 answers an `Upgrade` field, which Towline never sends (RFC 9110 §15.2.2).
            guard status != 101 else {
                return Self.malformed("the server switched to another protocol (101), which Towline did not request")
            }
            interimHeadCount += 1
            state = .statusLine
            guard interimHeadCount > Self.maximumInterimHeads else { return .more }
            return Self.tooLarge("the server sent more than 20 interim responses (1xx) and no final response")
        }
        guard status != 407 else {
            return .refused(TransportFailure(.proxyUnauthorized, Self.proxyCredentials))
        }
        state = .done
        if ignoresLength { fields.removeAll(named: "Content-Length") }
        if mayBeCoded, !fields.has("Transfer-Encoding"), !fields.has("Content-Length") {
            let reason = "the server sent an invalid response: its Transfer-Encoding header is malformed"
            return Self.malformed("\(reason), so the end of the file is unclear")
        }
        let head = ResponseHead(status: status, fields: fields, version: version)
        do throws(TransportFailure) {
            return .head(head, try BodyFraming.end(of: head))
        } catch {
            return .refused(error)
        }
    }

    private static func version(_ text: UnsafeRawBufferPointer) -> ResponseHead.Version? {
        if text.elementsEqual("HTTP/1.1".utf8) { return .http1_1 }
        if text.elementsEqual("HTTP/1.0".utf8) { return .http1_0 }
        if text.elementsEqual("HTTP/2".utf8) { return .http2 }
        if text.elementsEqual("HTTP/3".utf8) { return .http3 }
        return nil
    }

    /// Returns the number in a text of digits, such as Content-Length; `nil` for other text and for values above the
    /// range of `Int64`.
    static func decimal(_ digits: some Collection<UInt8>) -> Int64? {
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            let (tens, tensOverflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, sumOverflow) = tens.addingReportingOverflow(Int64(digit - 0x30))
            guard !tensOverflow, !sumOverflow else { return nil }
            value = sum
        }
        return value
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var (start, end) = (0, bytes.count)
        while start < end, isBlank(bytes[start]) { start += 1 }
        while start < end, isBlank(bytes[end - 1]) { end -= 1 }
        return part(of: bytes, start..<end)
    }

    private static func part(of bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    /// The error message for a response with status 407, in which the proxy asks for a user name and a password.
    static let proxyCredentials =
        "the proxy requires a valid user name and password (407)."
        + " \(Remedy.proxyLogin.sentence): http://USER:PASSWORD@HOST:PORT"

    private static func malformed(_ message: String) -> Step { .refused(TransportFailure(.malformed, message)) }
    private static func tooLarge(_ message: String) -> Step { .refused(TransportFailure(.headTooLarge, message)) }
}
