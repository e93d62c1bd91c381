internal import TowlineCore
import Synchronization

/// A repeating timer for one transfer, from `start` to `end`. At each tick (every 100 ms, for example) the transfer
/// checks timeouts and progress.
final class Ticker: Sendable {
    /// The phase of the timer: not started, started, or ended permanently.
    private enum Phase {
        case waiting
        case running
        case over
    }

    private let state = Mutex(Phase.waiting)
    private let after: DelayedCall
    private let tick: @Sendable (Occasion) -> Void

    /// The reason why the timer calls its function.
    enum Occasion {
        case start
        /// The time that was passed to the last `sleep` is over: the transfer now checks timeouts and progress.
        case tick
    }

    /// Creates a repeating timer, which calls no function before `start`.
    ///
    /// - Parameters:
    ///   - after: the timer that `sleep` uses.
    ///   - tick: the function that is called for each occasion; it calls `sleep` for the next tick, now or later.
    init(after: @escaping DelayedCall, _ tick: @escaping @Sendable (Occasion) -> Void) {
        self.after = after
        self.tick = tick
    }

    /// Starts the timer and calls its function with `.start`, unless it was started or ended before.
    func start() {
        let begins = state.withLock { state in
            guard case .waiting = state else { return false }
            state = .running
            return true
        }
        if begins { tick(.start) }
    }

    /// Calls the timer's function once with `.tick` after `duration`. The function calls this again for the next tick,
    /// so that a busy transfer does not collect unhandled ticks.
    func sleep(for duration: Duration) {
        guard !isOver else { return }
        after(duration) { [weak self] in
            guard let self, !isOver else { return }
            tick(.tick)
        }
    }

    private var isOver: Bool { state.withLock { if case .over = $0 { true } else { false } } }

    /// Stops the timer permanently: its function is not called any more.
    func end() { state.withLock { $0 = .over } }
}

/// Starts the repeating timers (tickers) of transfers that still run after a short delay.
///
/// Small files are complete before that, so that ten thousand of them in a row need no task and no timer each.
final class TickerBoard: Sendable {
    /// The repeating timers (tickers) that wait for their start, and whether a single timer runs for the first of them.
    private struct Waiting {
        /// The repeating timers (tickers) to start, each with its start time, earliest first.
        var waiting: [(ticker: Ticker, due: Duration)] = []
        /// `true` while a timer runs that starts the first of the waiting tickers.
        var isWatched = false
    }

    /// The number of running transfers: the more run, the less often each checks its state.
    let load = TransferLoad()
    private let state = Mutex(Waiting())
    private let after: DelayedCall

    private let clock: @Sendable () -> Duration

    /// Creates a board that has no tickers (repeating timers of transfers) to start.
    ///
    /// - Parameters:
    ///   - after: the timer that starts the tickers.
    ///   - clock: the monotonic time with which the start times are compared.
    init(after: @escaping DelayedCall, clock: @escaping @Sendable () -> Duration) {
        self.after = after
        self.clock = clock
    }

    /// Starts a ticker (the repeating timer of a transfer) after `delay` or up to 50 ms (`TickPolicy.grace`) later,
    /// unless it ends before.
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

    /// Ends a ticker (the repeating timer of a transfer) permanently, whether or not it was started.
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

/// A timer: a function that calls `body` once after `delay`, on any thread, so that `body` must return soon.
package typealias DelayedCall = @Sendable (_ delay: Duration, _ body: @escaping @Sendable () -> Void) -> Void
