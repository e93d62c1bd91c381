internal import TowlineCore
import Synchronization

/// The queue of events for the task that runs a transfer, such as responses, ticks and stops. Any thread may post. Only
/// one task may take.
final class TransferMailbox: Sendable {
    /// An event that a transfer handles, posted by its attempts, its storage, its ticker or its user.
    enum Event: Sendable {
        /// An event of a running attempt (request), such as its response or its end.
        case attempt(AttemptWriter.Report)
        /// An event of a sink (a part file), which the identifier names; `nil`: an event that applies to any sink of
        /// the transfer.
        case storage(TransferEvent, of: ObjectIdentifier?)
        /// The part file or stream with the given identifier has been published as the final file.
        case published(PublishedFile, of: ObjectIdentifier)
        /// A checkpoint has ended, which began at `start` when `bytes` bytes had been received. `of` names the part
        /// file.
        case checkpoint(TransferEvent, of: ObjectIdentifier, start: Duration, bytes: Int64)
        /// The transfer has lasted longer than a moment, about 50 ms. Regular `tick` events follow.
        case look
        /// The regular time to check timeouts, checkpoints and progress has come.
        case tick
        /// The network of the machine has changed to this state, so a waiting transfer may retry now.
        case nudge(NetworkState)
        /// The byte ranges that readers of the unfinished file want have changed.
        case wanted
        /// The transfer must stop. The purpose says whether its last bytes must be made durable.
        case stop(StopPurpose)
    }

    /// The events that were not taken yet, and the call of `take` that waits for one.
    private struct Contents {
        var events: [Event] = []
        /// The suspended call of `take`; `nil` if none waits. The code that removes it from here resumes it, once.
        /// Unchecked, because a checked continuation costs as much as the rest of the exchange.
        var taker: UnsafeContinuation<[Event], Never>?
        var isClosed = false
        var isStopped = false
        /// The function to call at the first `stop` event, set by `whenStopped`; `nil` if none.
        var stopped: (@Sendable () -> Void)?
    }

    private let state = Mutex(Contents())

    /// Adds an event for the next `take`. Does nothing after `close`. A `stop` event also calls the function of
    /// `whenStopped`.
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

    /// Drops the waiting events and all later ones, because the transfer has ended.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.events = []
        }
    }
}
