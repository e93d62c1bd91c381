import Foundation
internal import TowlineCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The head of a final response, and the way in which its body ends.
struct ResponseShape {
    /// The response head. The fields are sorted by name, because the dictionary of the session has no order.
    let head: ResponseHead
    /// How the end of the body is marked, as far as the fields show it.
    let framing: AttemptEnd.Framing
    /// The length of the body in bytes; `nil` if unknown, also if the session decodes the body.
    let length: Int64?

    /// The limits of a response head (`Transport`).
    private static let mostFields = 5000
    private static let mostBytes = 300 << 10

    /// Reads the response to a request with the scheme `scheme`. Throws the failure of a response that the receiver
    /// must not get.
    init(_ response: HTTPURLResponse, scheme: HTTPURL.Scheme, latency: Duration) throws(TransportFailure) {
        let pairs = response.allHeaderFields.compactMap { name, value in
            if let name = name as? String, let value = value as? String { (name, value) } else { nil }
        }
        let byteCount = pairs.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count }
        guard pairs.count <= Self.mostFields, byteCount <= Self.mostBytes else {
            throw TransportFailure(.headTooLarge, "the server sent more than 5000 response headers or 300 KiB of them")
        }
        let fields = HTTPFields(pairs.sorted { $0.0 < $1.0 })
        var head = ResponseHead(status: response.statusCode, fields: fields)
        head.latency = latency
        self.head = head
        guard head.status != 407 else {
            throw TransportFailure(.proxyUnauthorized, "the proxy of the system requires a user name and a password")
        }
        let coding = fields.values(named: "Content-Encoding").joined(separator: ",")
        let isCoded = !coding.isEmpty && !HTTPFields.equalNames(coding, "identity")
        guard !isCoded || !(200..<300).contains(head.status) else {
            let reason =
                "the server encoded the file (Content-Encoding: \(coding)) although the request did not allow that."
                + " URLSession decodes the bytes, so the file cannot be saved as it was sent"
            throw TransportFailure(.malformed, reason)
        }
        let end = try Self.end(of: head, scheme)
        framing = end.framing
        length = isCoded ? nil : end.length
    }

    /// Returns how the end of the body is marked (RFC 9112 §6.3), and the length of the body if a field gives it. The
    /// session does not report `close_notify` or END_STREAM, so a body without a length over TLS is unproven.
    private static func end(
        of head: ResponseHead, _ scheme: HTTPURL.Scheme
    ) throws(TransportFailure) -> (framing: AttemptEnd.Framing, length: Int64?) {
        let byConnection: AttemptEnd.Framing = scheme == .https ? .unclosed : .closed
        guard head.status != 204, head.status != 304 else { return (.delimited, 0) }
        switch TransferCoding(head.fields) {
        case .chunked: return (.delimited, nil)
        case .identity, .untilClose: return (byConnection, nil)
        case .unsupported: throw TransportFailure(.malformed, "the server used an unknown Transfer-Encoding")
        case .absent: break
        }
        switch ContentLength.parse(head.fields) {
        case .length(let length): return (.delimited, length)
        case .absent: return (byConnection, nil)
        case .invalid:
            let reason = "the server sent an invalid Content-Length or two different ones"
            throw TransportFailure(.malformed, reason)
        }
    }
}
