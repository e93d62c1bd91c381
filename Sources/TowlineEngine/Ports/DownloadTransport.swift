/// The HTTP client that a downloader uses: libcurl, the system's `URLSession`, or a scripted network for tests.
public struct DownloadTransport: Sendable {
    /// A function that creates the HTTP client. A downloader calls it once, and shuts the client down when the
    /// downloader closes.
    package let make: @Sendable () -> any Transport
    /// A function that creates the monitor of the network that the client uses; `nil` for the network of the system. A
    /// downloader calls it once, and closes the monitor when the downloader closes.
    package let makeMonitor: (@Sendable () -> any NetworkMonitor)?

    /// The clock of the downloader; `nil` for the real time.
    package let clock: (any DownloadClock)?

    /// Creates a choice of HTTP client from a function that returns a new one.
    ///
    /// - Parameters:
    ///   - monitor: a function that returns a monitor of the network of the client; `nil` for that of the system.
    ///   - clock: the clock of the downloader; `nil` for the real time.
    package init(
        monitor: (@Sendable () -> any NetworkMonitor)? = nil, clock: (any DownloadClock)? = nil,
        _ make: @escaping @Sendable () -> any Transport
    ) {
        (self.make, makeMonitor, self.clock) = (make, monitor, clock)
    }
}
