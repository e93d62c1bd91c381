internal import TowlineCore
import Synchronization

/// The queue of events for the task that runs a transfer, such as responses, timer ticks and stops. Any thread may
/// post; only one task may take.
final class TransferMailbox: Sendable {
    /// An event that a transfer handles, posted by its HTTP requests, its storage, its timer or its user.
    enum Event: Sendable {
        /// An event of a running attempt, such as its response or its end.
        case attempt(AttemptWriter.Report)
        /// An event about the part file or stream that the identifier names, such as a write error; `nil`: an event
        /// about any file of the transfer.
        case storage(TransferEvent, of: ObjectIdentifier?)
        /// The complete part file or stream that the identifier names has its final name, or was completely written.
        case published(PublishedFile, of: ObjectIdentifier)
        /// A sync of the part file (checkpoint) ended, which began at `start` when `bytes` bytes had been received.
        /// `of` names the part file.
        case checkpoint(TransferEvent, of: ObjectIdentifier, start: Duration, bytes: Int64)
        /// The transfer has run for about 50 ms, so that it checks timeouts and progress for the first time. Regular
        /// `tick` events follow.
        case look
        /// The regular time to check timeouts, checkpoints and progress, every 100 ms, for example, has come.
        case tick
        /// The network of the machine has changed to this state, so a transfer that waits for its next try may try now.
        case nudge(NetworkState)
        /// The byte ranges that programs read from the unfinished file have changed, so that they must be requested
        /// first.
        case wanted
        /// The transfer must stop. The purpose decides whether its last bytes must be synced to disk.
        case stop(StopPurpose)
    }

    /// The events that `take` has not returned yet, and the call of `take` that waits for one.
    private struct Contents {
        var events: [Event] = []
        /// The suspended call of `take`; `nil` if none waits. The code that sets this to `nil` must resume the call,
        /// once; unchecked, because a checked continuation is slower.
        var taker: UnsafeContinuation<[Event], Never>?
        /// `true` after `close`: later events are dropped.
        var isClosed = false
        /// `true` after the first `stop` event was posted.
        var isStopped = false
        /// The function to call at the first `stop` event, set by `whenStopped`; `nil` if none.
        var stopped: (@Sendable () -> Void)?
    }

    private let state = Mutex(Contents())

    /// Adds an event, which the next call of `take` returns; a `stop` event also calls the function of `whenStopped`.
    /// Does nothing after `close`.
    func post(_ event: Event) {
        let (taker, stopped) = state.withLock { state in
            guard !state.isClosed else {
                return (nil as UnsafeContinuation<[Event], Never>?, nil as (@Sendable () -> Void)?)
            }
            var stopped: (@Sendable () -> Void)?
            if case .stop = event {
                state.isStopped = true
                stopped = state.stopped.take()
            }
            let taker = state.taker.take()
            if taker == nil { state.events.append(event) }
            return (taker, stopped)
        }
        taker?.resume(returning: [event])
        stopped?()
    }

    /// Calls `body` at the first `stop` event, or now if one was posted before; `nil` removes the function. The
    /// transfer uses this while it waits for something other than events, such as reading a file.
    func whenStopped(_ body: (@Sendable () -> Void)?) {
        let isStopped = state.withLock { state in
            state.stopped = body
            return state.isStopped
        }
        if isStopped { body?() }
    }

    /// Returns the events since the last call, in their order; if there are none, waits for one. Only one call may run
    /// at a time, and none after `close`.
    nonisolated(nonsending) func take() async -> [Event] {
        await withUnsafeContinuation { taker in
            let events = state.withLock { state in
                if state.events.isEmpty { state.taker = taker }
                defer { state.events = [] }
                return state.events
            }
            if !events.isEmpty { taker.resume(returning: events) }
        }
    }

    /// Drops the events that `take` has not returned, and all later ones, because the transfer has ended.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.events = []
        }
    }
}
