/// The way in which a request uses its connection: alone or together with other requests.
package enum ConnectionSharing: Hashable, Sendable {
    /// The request has a connection of its own.
    case none
    /// The request is one of many streams (RFC 9113 §5) of a connection. Each thread of the transport has one
    /// connection.
    case one
    /// The request is one of a few streams on each of several connections. For a distant host the extra connections pay
    /// off, because each window starts small and grows separately (RFC 6928: ten segments, doubled with each round
    /// trip).
    case several

    /// The number of shared connections to a host with `several`. With those of the first five downloads, the host has
    /// sixteen (docs/internals/shared-connections.md).
    package static let connections = 11
    /// The maximum number of streams (simultaneous requests) on each shared connection with `several`.
    package static let streams = 24

    /// Returns this sharing, restricted for a host that has a known connection limit (`ceiling`) or more than sixteen
    /// `connections`: `several` becomes `one`, so that no connections are added.
    package func limited(ceiling: Int?, connections: Int) -> ConnectionSharing {
        let isLimited = ceiling != nil || connections > ConnectionBudget.most
        return self == .several && isLimited ? .one : self
    }
}
