internal import TowlineCore
import Synchronization

/// How many downloads of a batch may begin: so many that fetch, and some more that only wait, for the disk or for their next
/// attempt.
///
/// A file that is all there needs no connection. Those that are synced together are synced at the price of one: while the
/// disk is at it the next ones come. A download that waits for its next attempt, or that asks a silent host, leaves its
/// place to others. Downloads that were never tried begin before others take their places back.
final class BatchSlots: Sendable {
    private struct State {
        var concurrency: BatchConcurrency
        var fetching = 0
        var running = 0
        /// The number of downloads that left their places.
        var resting = 0
        /// Origins, and whether their last attempt got no answer. Limited to `mostOrigins`.
        var silence = OriginTable<Bool>()
        /// Resumed once by whoever takes it from here.
        var waiter: UnsafeContinuation<Void, Never>?
    }

    /// One download's slot. Let go of when its bytes are there, and once more, for good, when it has ended.
    final class Slot: Sendable {
        /// What it is for. Changes under the lock of `state` alone.
        private enum Phase: UInt8, AtomicRepresentable {
            case fetching
            /// Until the time of the next attempt, or the answer of a silent host.
            case resting
            /// Nothing more is to be fetched.
            case fetched
        }

        private let slots: BatchSlots
        /// In nanoseconds; `begin` sets it.
        private let began = Atomic<Int64>(0)
        private let phase = Atomic<Phase>(.fetching)
        private let isTakenByLong = Atomic<Bool>(false)

        fileprivate init(_ slots: BatchSlots) { self.slots = slots }

        /// The list has brought what it is for: waiting for that is no part of a download.
        func begin() { began.store(Int64(slots.clock() / .nanoseconds(1)), ordering: .relaxed) }

        /// Its bytes are there.
        func fetched(_ sharing: ConnectionSharing, from origin: HTTPURL.Origin? = nil) {
            end { state, duration, now in
                state.concurrency.fetched(after: duration, sharing, from: origin, now: now)
            }
        }

        /// There was nothing to fetch by itself: what it would have taken says nothing.
        func unused() {
            slots.release { state in
                guard phase.exchange(.fetched, ordering: .relaxed) == .fetching else { return }
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
        func failed(at origin: HTTPURL.Origin) {
            slots.state.withLock { $0.concurrency.failed(at: origin, now: slots.clock()) }
        }

        /// What it is for is long.
        func isLong() {
            slots.state.withLock { state in
                guard phase.load(ordering: .relaxed) == .fetching, !isTakenByLong.exchange(true, ordering: .relaxed)
                else { return }
                state.concurrency.tookUpLong(1)
            }
        }

        /// Leaves it to others for as long as the next attempt is to be waited for, if that is worth it.
        ///
        /// - Parameter isAsked: the server asked for the wait.
        /// - Returns: whether it did. Before the attempt it is to be taken back.
        func rest(for wait: Duration, isAsked: Bool) -> Bool {
            var rests = false
            slots.release { state in
                let isLong = isTakenByLong.load(ordering: .relaxed)
                guard phase.load(ordering: .relaxed) == .fetching,
                    state.concurrency.leavesPlace(for: wait, isAsked: isAsked, isLong: isLong)
                else { return }
                phase.store(.resting, ordering: .relaxed)
                state.fetching -= 1
                state.resting += 1
                rests = true
            }
            return rests
        }

        /// Takes it back for the next attempt. Downloads that were never tried go first, while more may run.
        ///
        /// - Parameter anyway: the attempt has begun, free or not.
        /// - Returns: `false`: no place is free.
        func takeBack(anyway: Bool = false) -> Bool {
            var isTaken = true
            slots.release { state in
                guard phase.load(ordering: .relaxed) == .resting else { return }
                let isNext = state.waiter == nil || slots.isCrowded(state)
                guard anyway || isNext && state.fetching < state.concurrency.limit else {
                    isTaken = false
                    return
                }
                state.resting -= 1
                phase.store(.fetching, ordering: .relaxed)
                state.fetching += 1
                // What came before says nothing of how long a download takes.
                begin()
            }
            return isTaken
        }

        /// Returns whether the last attempt at a host got no answer.
        func isSilent(_ origin: HTTPURL.Origin) -> Bool {
            slots.state.withLock { $0.silence.value(of: origin) ?? false }
        }

        /// Notes that an attempt at a host got an answer, or none.
        func note(silence: Bool, of origin: HTTPURL.Origin) {
            slots.state.withLock { state in
                guard state.silence.value(of: origin) != silence else { return }
                if state.silence.count >= BatchSlots.mostOrigins { state.silence = OriginTable() }
                state.silence.change(origin, adding: silence) { $0 = silence }
            }
        }

        /// Returns whether a host that does not answer for a moment counts as silent: it has never answered.
        func isUnknown(_ origin: HTTPURL.Origin) -> Bool {
            slots.state.withLock { $0.silence.value(of: origin) == nil }
        }

        private func end(_ note: (inout State, Duration, Duration) -> Void) {
            let now = slots.clock()
            slots.release { state in
                let last = phase.exchange(.fetched, ordering: .relaxed)
                if last == .resting { state.resting -= 1 }
                guard last == .fetching else { return }
                state.fetching -= 1
                if isTakenByLong.load(ordering: .relaxed) { state.concurrency.tookUpLong(-1) }
                note(&state, now - .nanoseconds(began.load(ordering: .relaxed)), now)
            }
        }
    }

    private let state: Mutex<State>
    private static let mostOrigins = 10_000
    /// So many more may wait.
    private let publishing: Int
    private let clock: @Sendable () -> Duration

    init(
        _ concurrency: BatchConcurrency, publishing: Int = BatchConcurrency.mostPublishing,
        clock: @escaping @Sendable () -> Duration = { MonotonicClock.now }
    ) {
        self.clock = clock
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
        state.withLock { $0.concurrency.refused(by: origin, now: clock()) }
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
        state.fetching >= state.concurrency.limit || isCrowded(state)
    }

    /// Returns whether no more may run. With a limit of one, downloads run one after the other. A download that rests
    /// keeps a journal besides.
    private func isCrowded(_ state: State) -> Bool {
        let limit = state.concurrency.limit
        return state.running + state.resting >= (limit > 1 ? limit + publishing : 1)
    }

    private func release(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return isFull(state) ? nil : state.waiter.take()
        }
        waiter?.resume()
    }
}
