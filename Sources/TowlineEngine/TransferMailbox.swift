internal import TowlineCore
import Synchronization

/// The queue of events for the code that runs a transfer. Any thread may post. Only one task may take.
final class TransferMailbox: Sendable {
    /// An event that a transfer handles.
    enum Event: Sendable {
        case attempt(AttemptWriter.Report)
        /// An event of a sink; `nil`: of the destination, with any sink.
        case storage(TransferEvent, of: ObjectIdentifier?)
        /// The sink has published the file.
        case published(PublishedFile, of: ObjectIdentifier)
        case checkpoint(TransferEvent, of: ObjectIdentifier, start: Duration, bytes: Int64)
        /// The transfer has lasted longer than a moment. Regular ticks follow.
        case look
        case tick
        case nudge
        case wanted
        case stop(StopPurpose)
    }

    private struct State {
        var events: [Event] = []
        /// The continuation of `take`. The code that removes it from here resumes it, once. Unchecked, because a
        /// checked continuation costs as much as the rest of the exchange.
        var taker: UnsafeContinuation<[Event], Never>?
        var isClosed = false
        var isStopped = false
        /// The function to call at the first stop; `nil` if none.
        var stopped: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Adds an event for the next `take`. Does nothing after `close`.
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

    /// Calls `body` at the first stop, or now if a stop was posted before; `nil` removes it. The transfer uses this
    /// while it waits for something other than events.
    func whenStopped(_ body: (@Sendable () -> Void)?) {
        let isStopped = state.withLock { state in
            state.stopped = body
            return state.isStopped
        }
        if isStopped { body?() }
    }

    /// Returns the events since the last call, in their order, and waits for the first one. Only one call may run at a
    /// time, and none after `close`.
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

    /// Drops the waiting events and all later ones.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.events = []
        }
    }
}
