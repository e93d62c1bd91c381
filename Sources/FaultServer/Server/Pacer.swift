import Synchronization

/// A limiter that spreads bytes evenly over time, without catching up after the client stopped reading.
struct Pacer {
    private let rate: Int64
    private var due = ContinuousClock.now

    init(rate: Int64) { self.rate = max(1, rate) }

    /// The number of bytes to send at once: the bytes of 10 ms, at most 256 KiB.
    var pieceLength: Int { Int(min(max(rate / 100, 1), 262_144)) }

    /// Counts `count` more bytes as sent, and waits until they are due.
    mutating func wait(for count: Int) async throws {
        let now = ContinuousClock.now
        if due < now - .milliseconds(100) { due = now }
        due += .nanoseconds(Int64(count) * 1_000_000_000 / rate)
        if due > now { try await Task.sleep(until: due, clock: .continuous) }
    }
}

/// A limiter for all replies of a server together.
final class SharedPacer: Sendable {
    /// The rate, and the time at which the next byte may be sent.
    private struct Pace {
        /// The maximum bytes per second; `nil` for no limit.
        var rate: Int64?
        var due = ContinuousClock.now
    }

    private let state: Mutex<Pace>

    init(rate: Int64) { state = Mutex(Pace(rate: max(1, rate))) }

    func wait(for count: Int) async throws {
        let now = ContinuousClock.now
        let turn = state.withLock { state -> ContinuousClock.Instant? in
            guard let rate = state.rate else { return nil }
            if state.due < now - .milliseconds(100) { state.due = now }
            state.due += .nanoseconds(Int64(count) * 1_000_000_000 / rate)
            return state.due
        }
        if let turn, turn > now { try await Task.sleep(until: turn, clock: .continuous) }
    }

    /// Removes the limit.
    func lift() { state.withLock { $0.rate = nil } }
}
