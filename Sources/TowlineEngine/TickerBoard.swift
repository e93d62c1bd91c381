internal import TowlineCore
import Synchronization

/// Makes one transfer look at itself now and then, from the moment it is started until it is ended.
final class Ticker: Sendable {
    private enum State {
        case waiting
        case running
        case over
    }

    private let state = Mutex(State.waiting)
    private let after: DelayedCall
    private let tick: @Sendable (Occasion) -> Void

    /// What the transfer is told.
    enum Occasion {
        /// It was started.
        case start
        /// It slept for as long as it was to.
        case tick
    }

    /// - Parameters:
    ///   - after: the timer.
    ///   - tick: answers each with `sleep`, now or later.
    init(after: @escaping DelayedCall, _ tick: @escaping @Sendable (Occasion) -> Void) {
        self.after = after
        self.tick = tick
    }

    /// Begins, unless it was ended before.
    func start() {
        let begins = state.withLock { state in
            guard case .waiting = state else { return false }
            state = .running
            return true
        }
        if begins { tick(.start) }
    }

    /// Ticks after that time. Called once for each tick: a busy transfer does not collect a backlog of them.
    func sleep(for duration: Duration) {
        guard !isOver else { return }
        after(duration) { [weak self] in
            guard let self, !isOver else { return }
            tick(.tick)
        }
    }

    private var isOver: Bool { state.withLock { if case .over = $0 { true } else { false } } }

    /// Ends it, for good.
    func end() { state.withLock { $0 = .over } }
}

/// Starts the tickers of transfers that are still there after a moment.
///
/// A small file is done before: of ten thousand in a row none needs a task and a timer of its own.
final class TickerBoard: Sendable {
    private struct State {
        /// In the order in which they are due.
        var waiting: [(ticker: Ticker, due: Duration)] = []
        var isWatched = false
    }

    private let state = Mutex(State())
    private let after: DelayedCall

    private let clock: @Sendable () -> Duration

    /// - Parameters:
    ///   - after: the timer.
    ///   - clock: the time that it counts in.
    init(after: @escaping DelayedCall, clock: @escaping @Sendable () -> Duration) {
        self.after = after
        self.clock = clock
    }

    /// Starts a ticker after that time, or up to `TickPolicy.grace` later, unless it ends before.
    func startSoon(_ ticker: Ticker, after delay: Duration = TickPolicy.grace) {
        let due = clock() + delay
        let needsWatch = state.withLock { state in
            let later = state.waiting.reversed().prefix { $0.due > due }.count
            state.waiting.insert((ticker, due), at: state.waiting.count - later)
            defer { state.isWatched = true }
            return !state.isWatched
        }
        if needsWatch { watch() }
    }

    /// Ends a ticker, started or not.
    func end(_ ticker: Ticker) {
        state.withLock { state in
            guard let index = state.waiting.firstIndex(where: { $0.ticker === ticker }) else { return }
            state.waiting.remove(at: index)
        }
        ticker.end()
    }

    private func watch() { after(TickPolicy.grace) { self.look() } }

    private func look() {
        let now = clock()
        let (due, isOver) = state.withLock { state -> ([Ticker], Bool) in
            let due = state.waiting.prefix { $0.due <= now }
            state.waiting.removeFirst(due.count)
            if state.waiting.isEmpty { state.isWatched = false }
            return (due.map(\.ticker), state.waiting.isEmpty)
        }
        for ticker in due { ticker.start() }
        if !isOver { watch() }
    }
}

/// Calls something after a delay, which must return soon.
package typealias DelayedCall = @Sendable (_ delay: Duration, _ body: @escaping @Sendable () -> Void) -> Void
