internal import TowlineCore
internal import TowlineEngine

/// What tells where a body ends (RFC 9112 §6.3), and refusal of everything ambiguous about it.
enum BodyFraming {
    /// What will tell the end of the body that follows `head`.
    ///
    /// Throws `malformed` where two readers could see two ends: `Transfer-Encoding` next to `Content-Length`
    /// (RFC 9112 §6.1 calls that an error), a coding that was not asked for, a length that is no number, lengths that differ.
    static func end(of head: ResponseHead) throws(TransportFailure) -> AttemptEnd.Framing {
        let length = try contentLength(head.fields)
        let isChunked = try isChunked(head.fields)
        guard length == nil || !isChunked else {
            let reason =
                "the server sent an invalid response with both Transfer-Encoding and Content-Length,"
                + " so the size of the file is unclear"
            throw TransportFailure(.malformed, reason)
        }
        // 204 and 304 have no body (RFC 9112 §6.3 rule 1).
        if length != nil || isChunked || head.status == 204 || head.status == 304 { return .delimited }
        guard head.version == .http2 || head.version == .http3 else { return .closed }
        return CurlLibrary.provesStreamEnd ? .delimited : .stream
    }

    /// The only value of `Content-Length`; a list of equal values counts as one (RFC 9110 §8.6).
    private static func contentLength(_ fields: HTTPFields) throws(TransportFailure) -> Int64? {
        // Nearly all have one line with a number alone.
        if let only = fields.value(named: "Content-Length"), let length = HeadCollector.decimal(only.utf8) {
            return length
        }
        var length: Int64?
        for member in fields.values(named: "Content-Length").flatMap(members) {
            guard let value = HeadCollector.decimal(member), length == nil || length == value else {
                let reason =
                    "the server sent an invalid Content-Length or two different ones, so the size of the file"
                    + " is unclear"
                throw TransportFailure(.malformed, reason)
            }
            length = value
        }
        return length
    }

    /// Whether the body comes in chunks. `identity`, a coding of the old RFC 2616, means none.
    private static func isChunked(_ fields: HTTPFields) throws(TransportFailure) -> Bool {
        guard fields.has("Transfer-Encoding") else { return false }
        let codings = fields.values(named: "Transfer-Encoding").flatMap(members).map { $0.map(ASCII.lowercased) }
        let real = codings.filter { !$0.elementsEqual("identity".utf8) }
        guard let coding = real.first else { return false }
        guard real.count == 1, coding.elementsEqual("chunked".utf8) else {
            let reason = "the server used a Transfer-Encoding that Towline does not support (only chunked is supported)"
            throw TransportFailure(.malformed, reason)
        }
        return true
    }

    /// The members of a comma-separated list, white space around them taken off.
    private static func members(_ value: String) -> [[UInt8]] {
        value.utf8.split(separator: 0x2C, omittingEmptySubsequences: false).map { member in
            let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
            let rest = member.drop(while: isBlank)
            return Array(rest.reversed().drop(while: isBlank).reversed())
        }
    }
}
