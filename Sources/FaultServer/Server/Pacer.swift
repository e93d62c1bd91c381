import Synchronization

/// Spreads bytes evenly over time. Time lost because the client did not read is not made up for.
struct Pacer {
    private let rate: Int64
    private var due = ContinuousClock.now

    init(rate: Int64) { self.rate = max(1, rate) }

    /// The bytes to send at once: a hundredth of a second's worth, no more than 256 KiB.
    var pieceLength: Int { Int(min(max(rate / 100, 1), 262_144)) }

    /// Waits until `count` more bytes are due, and counts them as sent.
    mutating func wait(for count: Int) async throws {
        let now = ContinuousClock.now
        if due < now - .milliseconds(100) { due = now }
        due += .nanoseconds(Int64(count) * 1_000_000_000 / rate)
        if due > now { try await Task.sleep(until: due, clock: .continuous) }
    }
}

/// One pace for all replies of a server together.
final class SharedPacer: Sendable {
    private struct State {
        /// Bytes a second; `nil`: as fast as it goes.
        var rate: Int64?
        var due = ContinuousClock.now
    }

    private let state: Mutex<State>

    init(rate: Int64) { state = Mutex(State(rate: max(1, rate))) }

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

    /// From now on nobody waits.
    func lift() { state.withLock { $0.rate = nil } }
}
