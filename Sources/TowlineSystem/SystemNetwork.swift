import CTowline
package import TowlineEngine

/// The machine's network.
package enum SystemNetwork {
    /// The best monitor that this system has.
    package static func monitor() -> any NetworkMonitor { NetlinkMonitor() ?? TickingMonitor() }

    /// Whether an interface other than the loopback is up and has an address that reaches beyond its link; `true` if
    /// the system does not tell.
    static var isProbablyOnline: Bool { towline_has_address() != 0 }
}
