internal import TowlineCore
import Synchronization

/// What happens to a transfer, on its way to whoever runs it. Anybody may post, from any thread; one takes.
final class TransferMailbox: Sendable {
    /// What a transfer waits for.
    enum Event: Sendable {
        case attempt(AttemptWriter.Report)
        /// Of that sink; `nil`: of the place, whatever is there.
        case storage(TransferEvent, of: ObjectIdentifier?)
        /// That sink has made the file.
        case published(PublishedFile, of: ObjectIdentifier)
        case checkpoint(TransferEvent, of: ObjectIdentifier, start: Duration, bytes: Int64)
        /// The transfer has lasted for a moment: it looks at itself from now on.
        case look
        case tick
        case nudge
        case wanted
        case stop(StopPurpose)
    }

    private struct State {
        var events: [Event] = []
        /// Resumed once by whoever takes it from here. Not a checked one, which costs as much as the rest.
        var taker: UnsafeContinuation<[Event], Never>?
        var isClosed = false
        var isStopped = false
        /// Heard once, at the first stop.
        var stopped: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Hands an event over. After `close` it is dropped.
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

    /// Calls `body` when a stop comes, or now if one came; `nil`: nobody listens any more. Who waits for something else than
    /// events hears of it that way.
    func whenStopped(_ body: (@Sendable () -> Void)?) {
        let isStopped = state.withLock { state in
            state.stopped = body
            return state.isStopped
        }
        if isStopped { body?() }
    }

    /// What came since the last call, in its order; waits for something. One call at a time, and none after `close`.
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

    /// Nobody takes any more.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.events = []
        }
    }
}
