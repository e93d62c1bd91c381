import CTowline
package import TowlineCore
package import TowlineEngine

/// The network of this machine.
package enum SystemNetwork {
    /// Returns the best monitor that this system supports.
    package static func monitor() -> any NetworkMonitor { NetlinkMonitor() ?? TickingMonitor() }

    /// Returns the current state of the network in the namespace of the calling thread. If the system does not tell the
    /// state, the network counts as available.
    package static func state() -> NetworkState { towline_has_network() == 0 ? .unavailable : .available }
}
