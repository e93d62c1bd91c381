internal import TowlineCore
import Synchronization

/// How many downloads of a batch may begin: so many that fetch, and some more that only wait for the disk.
///
/// A file that is all there needs no connection. Those that are synced together are synced at the price of one: while the
/// disk is at it the next ones come.
final class BatchSlots: Sendable {
    private struct State {
        var concurrency: BatchConcurrency
        var fetching = 0
        var running = 0
        /// Resumed once by whoever takes it from here.
        var waiter: UnsafeContinuation<Void, Never>?
    }

    /// One download's slot. Let go of when its bytes are there, and once more, for good, when it has ended.
    final class Slot: Sendable {
        private let slots: BatchSlots
        private let began = MonotonicClock.now
        private let isFetching = Atomic<Bool>(true)

        fileprivate init(_ slots: BatchSlots) { self.slots = slots }

        /// Its bytes are there.
        func fetched(_ sharing: ConnectionSharing) {
            guard isFetching.exchange(false, ordering: .relaxed) else { return }
            slots.release { end(&$0, sharing) }
        }

        /// There was nothing to fetch by itself: what it would have taken says nothing.
        func unused() {
            guard isFetching.exchange(false, ordering: .relaxed) else { return }
            slots.release { state in
                state.fetching -= 1
                state.running -= 1
            }
        }

        /// It is over.
        func ended() {
            let wasFetching = isFetching.exchange(false, ordering: .relaxed)
            slots.release { state in
                state.running -= 1
                if wasFetching { end(&state, .none) }
            }
        }

        /// An attempt failed and another follows.
        func failed() { slots.state.withLock { $0.concurrency.failed(now: MonotonicClock.now) } }

        private func end(_ state: inout State, _ sharing: ConnectionSharing) {
            state.fetching -= 1
            let now = MonotonicClock.now
            state.concurrency.fetched(after: now - began, sharing, now: now)
        }
    }

    private let state: Mutex<State>
    /// So many more may wait for the disk.
    private let publishing: Int

    init(_ concurrency: BatchConcurrency, publishing: Int = BatchConcurrency.mostPublishing) {
        state = Mutex(State(concurrency: concurrency))
        self.publishing = publishing
    }

    /// A slot, as soon as there is one. One call at a time.
    nonisolated(nonsending) func take() async -> Slot {
        while !tryTake() {
            await withUnsafeContinuation { waiter in
                let isFree = state.withLock { state in
                    if isFull(state) { state.waiter = waiter }
                    return state.waiter == nil
                }
                if isFree { waiter.resume() }
            }
        }
        return Slot(self)
    }

    /// So many downloads may have connections of their own to one host.
    var ownConnections: Int { state.withLock(\.concurrency.ownConnections) }

    /// Whether somebody waits for a slot.
    var isWaitedFor: Bool { state.withLock { $0.waiter != nil } }

    private func tryTake() -> Bool {
        state.withLock { state in
            guard !isFull(state) else { return false }
            state.fetching += 1
            state.running += 1
            return true
        }
    }

    private func isFull(_ state: State) -> Bool {
        let limit = state.concurrency.limit
        // Who wants one at a time wants one after the other.
        return state.fetching >= limit || state.running >= (limit > 1 ? limit + publishing : 1)
    }

    private func release(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return isFull(state) ? nil : state.waiter.take()
        }
        waiter?.resume()
    }
}
