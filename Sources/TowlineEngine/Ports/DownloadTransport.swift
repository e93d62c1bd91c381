/// The HTTP client that a downloader uses: libcurl, the system's `URLSession`, or a scripted network for tests.
public struct DownloadTransport: Sendable {
    /// A function that creates the HTTP client. A downloader calls it once, and shuts the client down when the
    /// downloader closes.
    package let make: @Sendable () -> any Transport

    /// Creates a choice of HTTP client from a function that returns a new one.
    package init(_ make: @escaping @Sendable () -> any Transport) { self.make = make }
}
