/// The time of a downloader: the real time, or a time that a test advances.
package protocol DownloadClock: Sendable {
    /// The monotonic time: the duration since a fixed moment.
    var time: Duration { get }

    /// The time of day in milliseconds since 1970, for display and for stored times. Never used to wait, because the
    /// user can change it.
    var milliseconds: Int64 { get }

    /// Calls `body` once after `delay`, on any thread, so that `body` must return soon.
    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void)

    /// Waits until the monotonic time `end`.
    ///
    /// - Throws: `CancellationError` if the current task is cancelled, at once.
    func sleep(until end: Duration) async throws
}

extension DownloadClock {
    /// Waits for `duration`, otherwise like `sleep(until:)`.
    package func sleep(for duration: Duration) async throws { try await sleep(until: time + duration) }
}
