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
        /// In nanoseconds.
        private let began = Atomic<Int64>(Slot.now)
        private let isFetching = Atomic<Bool>(true)
        private let isTakenByLong = Atomic<Bool>(false)

        fileprivate init(_ slots: BatchSlots) { self.slots = slots }

        private static var now: Int64 { Int64(MonotonicClock.now / .nanoseconds(1)) }

        /// The list has brought what it is for: waiting for that is no part of a download.
        func begin() { began.store(Slot.now, ordering: .relaxed) }

        /// Its bytes are there.
        func fetched(_ sharing: ConnectionSharing, from origin: HTTPURL.Origin? = nil) {
            end { state, duration, now in
                state.concurrency.fetched(after: duration, sharing, from: origin, now: now)
            }
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
            end { state, duration, _ in state.concurrency.ended(after: duration) }
            slots.release { $0.running -= 1 }
        }

        /// An attempt failed.
        func failed() { slots.state.withLock { $0.concurrency.failed(now: MonotonicClock.now) } }

        /// What it is for is long.
        func isLong() {
            slots.state.withLock { state in
                guard isFetching.load(ordering: .relaxed), !isTakenByLong.exchange(true, ordering: .relaxed) else {
                    return
                }
                state.concurrency.tookUpLong(1)
            }
        }

        private func end(_ note: (inout State, Duration, Duration) -> Void) {
            let now = MonotonicClock.now
            slots.release { state in
                guard isFetching.exchange(false, ordering: .relaxed) else { return }
                state.fetching -= 1
                if isTakenByLong.load(ordering: .relaxed) { state.concurrency.tookUpLong(-1) }
                note(&state, now - .nanoseconds(began.load(ordering: .relaxed)), now)
            }
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

    /// So many downloads may have connections of their own to a host.
    func connections(to origin: HTTPURL.Origin) -> Int { state.withLock { $0.concurrency.connections(to: origin) } }

    /// A host says that it is asked for too much.
    func refused(by origin: HTTPURL.Origin) {
        state.withLock { $0.concurrency.refused(by: origin, now: MonotonicClock.now) }
    }

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
