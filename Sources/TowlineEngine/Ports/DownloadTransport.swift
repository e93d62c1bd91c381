/// The HTTP client that a downloader uses: libcurl, the system's `URLSession`, or a scripted network for tests.
public struct DownloadTransport: Sendable {
    /// A function that creates the HTTP client. A downloader calls it once, and shuts the client down when the
    /// downloader closes.
    package let make: @Sendable () -> any Transport
    /// A function that creates the monitor of the network that the client uses; `nil` for the network of the system. A
    /// downloader calls it once, and closes the monitor when the downloader closes.
    package let makeMonitor: (@Sendable () -> any NetworkMonitor)?

    /// Creates a choice of HTTP client from a function that returns a new one, and from one that returns a monitor of
    /// its network; `nil` for the network of the system.
    package init(
        monitor: (@Sendable () -> any NetworkMonitor)? = nil, _ make: @escaping @Sendable () -> any Transport
    ) {
        (self.make, makeMonitor) = (make, monitor)
    }
}
