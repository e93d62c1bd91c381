package import TowlineEngine

/// The network of this machine.
package enum SystemNetwork {
    /// Returns the best monitor that this system supports.
    package static func monitor() -> any NetworkMonitor { NetlinkMonitor() ?? TickingMonitor() }
}
