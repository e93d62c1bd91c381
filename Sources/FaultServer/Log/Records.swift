/// What came over the wire up to some moment.
package struct Records: Sendable {
    /// One connection.
    package struct Connection: Sendable {
        /// Its number; the server's first is 0.
        package let number: Int
        /// When it was accepted, since the server's start.
        package let accepted: Duration
        /// When it was gone; `nil` while it is open.
        package internal(set) var closed: Duration?
    }

    /// One request and what was answered.
    package struct Request: Sendable {
        /// Its place among all requests of the server; the first is 0.
        package let number: Int
        /// The request.
        package let info: RequestInfo
        /// When its head had come, since the server's start.
        package let time: Duration
        /// The status sent; `nil` if none was.
        package internal(set) var status: Int?
        /// The body bytes that the kernel accepted.
        package internal(set) var bodyBytes: Int64 = 0
        /// When the reply was over; `nil` while it is under way.
        package internal(set) var ended: Duration?

        /// The target's path.
        package var path: String { info.path }
    }

    /// All connections in the order they were accepted.
    package internal(set) var connections: [Connection] = []
    /// All requests in the order they came.
    package internal(set) var requests: [Request] = []
    /// How many connections are open.
    package internal(set) var openConnections = 0
    /// The most connections that were open at one time.
    package internal(set) var mostOpenConnections = 0

    private var bodyBytes: [String: Int64] = [:]

    /// The requests of one path, in order.
    package func requests(_ path: String) -> [Request] { requests.filter { $0.path == path } }

    /// The body bytes that the kernel accepted in all answers to requests of one path.
    package func bodyBytesServed(_ path: String) -> Int64 { bodyBytes[path] ?? 0 }

    /// The same over all paths.
    package var bodyBytesServed: Int64 { bodyBytes.values.reduce(0, +) }

    mutating func addBodyBytes(_ count: Int64, request: Int) {
        requests[request].bodyBytes += count
        bodyBytes[requests[request].path, default: 0] += count
    }
}
