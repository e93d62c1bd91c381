/// The head of a final (not 1xx) response.
package struct ResponseHead: Hashable, Sendable {
    /// The version of HTTP the response came over.
    package enum Version: Hashable, Sendable {
        /// HTTP/1.0: closes after each response unless told otherwise.
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
    /// The fields, in order.
    package var fields: HTTPFields
    /// The protocol it came over.
    package var version: Version
    /// What passed between the request and this: a round trip, and what the server took. `nil` if nobody measured.
    package var latency: Duration?

    /// Makes a head.
    package init(status: Int, fields: HTTPFields = HTTPFields(), version: Version = .http1_1) {
        self.status = status
        self.fields = fields
        self.version = version
    }
}
