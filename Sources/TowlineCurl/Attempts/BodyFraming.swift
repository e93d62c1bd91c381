internal import TowlineCore
internal import TowlineEngine

/// The rules that determine from a response head how the end of the body is marked (RFC 9112 §6.3): by a length, by
/// chunks, or by the end of the connection. Ambiguous heads are rejected.
enum BodyFraming {
    /// Returns how the end of the body that follows `head` is marked: `.delimited` by a length, chunks or a status
    /// without a body; `.closed` by the end of the connection; `.stream` by the end of an HTTP/2 stream that libcurl
    /// does not prove.
    ///
    /// `Transfer-Encoding` overrides `Content-Length` (RFC 9112 §6.3 rule 3), as in libcurl. Throws `malformed` for a
    /// coding that libcurl does not decode, a length that is not a number, and lengths that differ.
    static func end(of head: ResponseHead) throws(TransportFailure) -> AttemptEnd.Framing {
        // 204 and 304 have no body (RFC 9112 §6.3 rule 1).
        let isBodyless = head.status == 204 || head.status == 304
        switch TransferCoding(head.fields) {
        case .chunked: return .delimited
        case .identity, .untilClose:
            // libcurl ignores Content-Length here.
            _ = try contentLength(head.fields)
            return isBodyless ? .delimited : .closed
        case .unsupported:
            let reason =
                "the server used a Transfer-Encoding that Towline does not support"
                + " (supported: chunked, gzip, deflate, br, zstd)"
            throw TransportFailure(.malformed, reason)
        case .absent: break
        }
        if try contentLength(head.fields) != nil || isBodyless { return .delimited }
        guard head.version == .http2 || head.version == .http3 else { return .closed }
        return CurlLibrary.provesStreamEnd ? .delimited : .stream
    }

    /// Returns the value of `Content-Length`; `nil` if the head has no such field. Equal values in a list count as one
    /// (RFC 9110 §8.6). Throws `malformed` for differing values and values that are not numbers.
    private static func contentLength(_ fields: HTTPFields) throws(TransportFailure) -> Int64? {
        // Nearly all heads have one line with a single number.
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

    /// Returns the members of a field value that is a comma-separated list, without the white space around them.
    private static func members(_ value: String) -> [[UInt8]] {
        value.utf8.split(separator: 0x2C, omittingEmptySubsequences: false).map { member in
            let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
            let rest = member.drop(while: isBlank)
            return Array(rest.reversed().drop(while: isBlank).reversed())
        }
    }
}
