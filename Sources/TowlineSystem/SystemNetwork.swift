import CTowline
package import TowlineEngine

/// The network of this machine.
package enum SystemNetwork {
    /// Returns the best monitor that this system supports.
    package static func monitor() -> any NetworkMonitor { NetlinkMonitor() ?? TickingMonitor() }

    /// Returns whether an interface other than the loopback is up and has an address that is valid beyond its link, or
    /// `true` if the system does not report this.
    static var isProbablyOnline: Bool { towline_has_address() != 0 }
}
