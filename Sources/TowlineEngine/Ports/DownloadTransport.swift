/// The HTTP client that a downloader uses: libcurl, the system's `URLSession`, or a scripted network for tests.
public struct DownloadTransport: Sendable {
    /// Creates the transport. A downloader shuts it down when the downloader closes.
    package let make: @Sendable () -> any Transport

    /// Creates a choice from a function that returns a new transport.
    package init(_ make: @escaping @Sendable () -> any Transport) { self.make = make }
}
