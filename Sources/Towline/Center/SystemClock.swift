import Foundation
import TowlineEngine

/// The real time.
struct SystemClock: DownloadClock {
    var time: Duration { MonotonicClock.now }
    var milliseconds: Int64 { Date().milliseconds }

    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        // This task is never cancelled. It ends after the delay.
        Task {
            try? await Task.sleep(for: delay)
            body()
        }
    }

    func sleep(until end: Duration) async throws { try await Task.sleep(for: end - time) }
}

extension DownloadClock {
    /// The time of day.
    var date: Date { Date(milliseconds: milliseconds) }
}

extension Date {
    /// Creates a date from milliseconds since 1970.
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// The date in milliseconds since 1970.
    package var milliseconds: Int64 { Int64((timeIntervalSince1970 * 1000).rounded()) }
}
