/// A snapshot of the connections and requests of a server.
package struct Records: Sendable {
    /// One connection.
    package struct Connection: Sendable {
        /// The number of the connection; the server's first connection is 0.
        package let number: Int
        /// The time of acceptance, since the server's start.
        package let accepted: Duration
        /// The time of the end, since the server's start; `nil` while the connection is open.
        package internal(set) var closed: Duration?
    }

    /// One request and its response.
    package struct Request: Sendable {
        /// The number of the request among all requests of the server; the first is 0.
        package let number: Int
        /// The request.
        package let info: RequestInfo
        /// The time at which the head was received, since the server's start.
        package let time: Duration
        /// The status sent; `nil` before a status is sent.
        package internal(set) var status: Int?
        /// The number of body bytes that the kernel accepted.
        package internal(set) var bodyBytes: Int64 = 0
        /// The time at which the reply ended, since the server's start; `nil` before the end.
        package internal(set) var ended: Duration?

        /// The target's path.
        package var path: String { info.path }
    }

    /// The connections in the order of acceptance.
    package internal(set) var connections: [Connection] = []
    /// The requests in the order of arrival.
    package internal(set) var requests: [Request] = []
    /// The number of open connections.
    package internal(set) var openConnections = 0
    /// The maximum number of connections that were open at the same time.
    package internal(set) var mostOpenConnections = 0

    private var bodyBytes: [String: Int64] = [:]

    /// Returns the requests of one path, in order.
    package func requests(_ path: String) -> [Request] { requests.filter { $0.path == path } }

    /// Returns the number of body bytes that the kernel accepted in all responses to requests of one path.
    package func bodyBytesServed(_ path: String) -> Int64 { bodyBytes[path] ?? 0 }

    /// The number of body bytes that the kernel accepted in all responses.
    package var bodyBytesServed: Int64 { bodyBytes.values.reduce(0, +) }

    mutating func addBodyBytes(_ count: Int64, request: Int) {
        requests[request].bodyBytes += count
        bodyBytes[requests[request].path, default: 0] += count
    }
}
