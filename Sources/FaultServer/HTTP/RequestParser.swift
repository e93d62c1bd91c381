/// A parser of HTTP/1.1 request heads in a stream of bytes. Skips bodies by their `Content-Length`.
struct RequestParser {
    /// A request line and its fields.
    struct Head {
        var method: String
        var target: String
        var version: String
        var fields: [(String, String)]
    }

    /// The first bytes of HTTP/2 (RFC 9113 §3.4).
    static let http2Preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private(set) var bytes: [UInt8] = []
    private var bodyLeft = 0
    private var searched = 0

    mutating func append(_ more: some Sequence<UInt8>) {
        bytes.append(contentsOf: more)
        let dropped = min(bodyLeft, bytes.count)
        bytes.removeFirst(dropped)
        bodyLeft -= dropped
    }

    /// `true` if the received bytes are a prefix of HTTP/2's preface, or begin with the preface.
    var mayBeHTTP2: Bool { RequestParser.http2Preface.starts(with: bytes.prefix(RequestParser.http2Preface.count)) }

    /// `true` if HTTP/2's whole preface was received.
    var isHTTP2: Bool { bytes.starts(with: RequestParser.http2Preface) }

    /// Takes the next request head; `nil` if it is incomplete.
    mutating func next() -> Head? {
        guard let end = endOfHead() else { return nil }
        let text = String(decoding: bytes[..<end], as: UTF8.self)
        bytes.removeFirst(end + 4)
        searched = 0
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        let parts = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let fields = lines.dropFirst().map { line in
            let name = line.prefix { $0 != ":" }
            let value = line.dropFirst(name.count + 1).drop { $0 == " " || $0 == "\t" }
            return (String(name), String(value))
        }
        let head = Head(
            method: parts.first ?? "", target: parts.count > 1 ? parts[1] : "", version: parts.last ?? "",
            fields: fields)
        let length = fields.first { $0.0.lowercased() == "content-length" }.flatMap { Int($0.1) } ?? 0
        bodyLeft = max(0, length)
        append([])
        return head
    }

    private mutating func endOfHead() -> Int? {
        var place = searched
        while place + 4 <= bytes.count {
            if bytes[place] == 13, bytes[place + 1] == 10, bytes[place + 2] == 13, bytes[place + 3] == 10 {
                return place
            }
            place += 1
        }
        searched = max(0, bytes.count - 3)
        return nil
    }
}
