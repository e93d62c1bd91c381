/// The status and the header fields of a final (not 1xx) response, before its body.
package struct ResponseHead: Hashable, Sendable {
    /// The HTTP version of a response.
    package enum Version: Hashable, Sendable {
        /// HTTP/1.0: the connection closes after each response unless a field keeps it open.
        case http1_0
        /// HTTP/1.1.
        case http1_1
        /// HTTP/2.
        case http2
        /// HTTP/3.
        case http3
    }

    /// The status code, 200 … 999.
    package var status: Int
    /// The header fields of the response, in order.
    package var fields: HTTPFields
    /// The HTTP version of the response.
    package var version: Version
    /// The time from the request to this head: a round trip and the server's processing. `nil` if not measured.
    package var latency: Duration?

    /// Creates the head of a response from its status, header fields and HTTP version.
    package init(status: Int, fields: HTTPFields = HTTPFields(), version: Version = .http1_1) {
        self.status = status
        self.fields = fields
        self.version = version
    }
}
