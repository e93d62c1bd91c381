/// The state of the network of this machine.
public enum NetworkState: String, Hashable, Sendable, Codable {
    /// An interface other than loopback is connected and has a route, or the system does not report its network.
    case available
    /// No interface other than loopback is connected and has a route. Only servers on this machine can be reached.
    case unavailable
}
