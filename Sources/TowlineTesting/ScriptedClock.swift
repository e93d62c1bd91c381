public import Foundation
import Synchronization
import Towline
import TowlineEngine

/// The clock of a ``ScriptedNetwork``. It runs like the real clock, and a test advances it to end waits at once.
///
/// Each downloader that uses the network reads the time from this clock: for delays before retries and delays that a
/// server requests, time limits for silent connections, rates, the expiry of links, and the dates in snapshots.
///
/// ```swift
/// network["https://example.org/film.mp4"] = .init(status: 503)
/// // … the download waits …
/// network["https://example.org/film.mp4"] = .init(data)
/// network.clock.advance(by: .seconds(300))
/// ```
///
/// All calls are safe from any thread.
public final class ScriptedClock: Sendable {
    private struct Timer {
        /// The monotonic time at which `body` is called.
        let due: Duration
        let body: @Sendable () -> Void
    }

    private struct Contents {
        /// The difference between the time of this clock and the real time.
        var lead = Duration.zero
        var timers: [Timer] = []

        /// Advances the clock to a monotonic time, unless it is later.
        mutating func reach(_ time: Duration) { lead = max(lead, time - MonotonicClock.now) }

        /// Removes the timer that is due first, if it is due at or before `end`, and advances the clock to its time.
        mutating func takeTimer(until end: Duration) -> Timer? {
            guard let index = timers.indices.min(by: { timers[$0].due < timers[$1].due }), timers[index].due <= end
            else { return nil }
            let timer = timers.remove(at: index)
            reach(timer.due)
            return timer
        }
    }

    private let contents = Mutex(Contents())

    init() {}

    /// The date of this clock, with which dates in snapshots, such as ``DownloadSnapshot/waitsUntil``, can be compared.
    public var now: Date { Date().addingTimeInterval(contents.withLock { $0.lead } / .seconds(1)) }

    /// Advances the clock by a duration, as if this time passed: waits that end in this time are over, and a connection
    /// delivers the bytes that its rate allows.
    ///
    /// The effects, such as a new request, follow in the background: wait for a snapshot that shows them. A wait that
    /// begins later is not affected. To end a long wait, first wait until ``DownloadSnapshot/waitsUntil`` is not `nil`.
    public func advance(by duration: Duration) {
        let end = time + duration
        callTimers(until: end)
        contents.withLock { $0.reach(end) }
    }

    private func callTimers(until end: Duration) {
        while let timer = contents.withLock({ $0.takeTimer(until: end) }) { timer.body() }
    }
}

extension ScriptedClock: DownloadClock {
    package var time: Duration { contents.withLock { MonotonicClock.now + $0.lead } }

    package var milliseconds: Int64 { now.milliseconds }

    package func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        call(body, at: time + max(.zero, delay))
    }

    private func call(_ body: @escaping @Sendable () -> Void, at due: Duration) {
        contents.withLock { $0.timers.append(Timer(due: due, body: body)) }
        DispatchQueue.global().asyncAfter(deadline: .now() + max(.zero, due - time) / .seconds(1)) {
            self.callTimers(until: self.time)
        }
    }

    package func sleep(until end: Duration) async throws {
        // A stream ends when its reader is cancelled.
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        call({ continuation.finish() }, at: end)
        for await _ in stream {}
        try Task.checkCancellation()
    }
}
