internal import TowlineCore
import Synchronization

/// The slots that limit how many downloads of a batch run (docs/internals/list-concurrency.md): those that receive
/// bytes, and some more that only wait for the disk, for their next attempt or for the response of a silent host.
/// Downloads that were never tried begin before others take their slots back.
final class BatchSlots: Sendable {
    /// The numbers of the batch's downloads in each phase, and the call of `take` that waits for a free slot.
    struct Occupancy {
        var concurrency: BatchConcurrency
        var fetching = 0
        var running = 0
        /// The number of downloads that wait for their next attempts and left their slots to others meanwhile.
        var resting = 0
        /// The hosts (origins) of recent attempts, each with `true` if the last attempt there got no response. At most
        /// `mostOrigins`.
        var silence: [HTTPURL.Origin: Bool] = [:]
        /// The suspended call of `take`; `nil` if none waits. The code that removes it from here resumes it, once.
        var waiter: UnsafeContinuation<Void, Never>?
    }

    /// The right of one download to run. The slot stops counting as receiving when the bytes are complete, and is
    /// released permanently when the download has ended.
    final class Slot: Sendable {
        /// The phase of the download that has this slot. Changes only under the lock of `state`.
        private enum Phase: UInt8, AtomicRepresentable {
            case fetching
            /// The download waits for its next attempt, or for the response of a silent host, and others may use its
            /// slot.
            case resting
            /// The download needs no more bytes: they are complete, or it has ended. Another download may begin.
            case fetched
        }

        private let slots: BatchSlots
        /// The time at which the download began, in nanoseconds. `begin` sets it.
        private let began = Atomic<Int64>(0)
        private let phase = Atomic<Phase>(.fetching)
        private let isTakenByLong = Atomic<Bool>(false)

        fileprivate init(_ slots: BatchSlots) { self.slots = slots }

        /// Records the time at which the download begins. Called after the entry was read: waiting for the list is not
        /// part of a download.
        func begin() { began.store(Int64(slots.clock() / .nanoseconds(1)), ordering: .relaxed) }

        /// Records that the bytes of the download are complete, and how long they took. The number of downloads at once
        /// is adapted to that. `sharing`: the use of the connection.
        func fetched(_ sharing: ConnectionSharing, from origin: HTTPURL.Origin? = nil) {
            end { state, duration, now in
                state.concurrency.fetched(after: duration, sharing, from: origin, now: now)
            }
        }

        /// Releases the slot of a list entry that runs no download, such as an invalid one. No duration is recorded.
        func unused() {
            slots.release { state in
                guard phase.exchange(.fetched, ordering: .relaxed) == .fetching else { return }
                state.fetching -= 1
                state.running -= 1
            }
        }

        /// Releases the slot of a download that has ended, with or without success.
        func ended() {
            end { state, duration, _ in state.concurrency.ended(after: duration) }
            slots.release { $0.running -= 1 }
        }

        /// Records that an attempt at a host failed, which may lower the number of downloads at once.
        func failed(at origin: HTTPURL.Origin) {
            slots.state.withLock { $0.concurrency.failed(at: origin, now: slots.clock()) }
        }

        /// Records that the file of the download is long, so that the download keeps its slot while it waits.
        func isLong() {
            slots.state.withLock { state in
                guard phase.load(ordering: .relaxed) == .fetching, !isTakenByLong.exchange(true, ordering: .relaxed)
                else { return }
                state.concurrency.tookUpLong(1)
            }
        }

        /// Leaves the slot to other downloads until the next attempt, if `wait` is long enough and others can use it.
        ///
        /// - Parameter isAsked: `true` if the server asked for the wait.
        /// - Returns: `true` if the slot was left. Call `takeBack` before the next attempt.
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

        /// Takes the slot back for the next attempt. Downloads that were never tried get slots first, while more may
        /// run.
        ///
        /// - Parameter anyway: `true` if the attempt has begun: the slot is then taken back even if none is free.
        /// - Returns: `false` if no slot is free.
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
                // The time before the wait does not count as a part of the download's duration.
                begin()
            }
            return isTaken
        }

        /// Returns whether the last attempt at a host got no response, so that a waiting download may lend its slot.
        func isSilent(_ origin: HTTPURL.Origin) -> Bool {
            slots.state.withLock { $0.silence[origin] ?? false }
        }

        /// Records whether the last attempt at a host got no response. A download that waits for such a host can lend
        /// its slot.
        func note(silence: Bool, of origin: HTTPURL.Origin) {
            slots.state.withLock { state in
                guard state.silence[origin] != silence else { return }
                if state.silence.count >= BatchSlots.mostOrigins { state.silence = [:] }
                state.silence[origin] = silence
            }
        }

        /// Returns whether no attempt at a host has got a response or failed yet. An unknown host counts as silent
        /// after a short wait for its first response.
        func isUnknown(_ origin: HTTPURL.Origin) -> Bool {
            slots.state.withLock { $0.silence[origin] == nil }
        }

        private func end(_ note: (inout Occupancy, Duration, Duration) -> Void) {
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

    let state: Mutex<Occupancy>
    private static let mostOrigins = 10_000
    /// The number of downloads that may wait for the disk or their next attempts, besides those that receive bytes.
    private let publishing: Int
    private let clock: @Sendable () -> Duration

    init(
        _ concurrency: BatchConcurrency, publishing: Int = BatchConcurrency.mostPublishing,
        clock: @escaping @Sendable () -> Duration = { MonotonicClock.now }
    ) {
        self.clock = clock
        state = Mutex(Occupancy(concurrency: concurrency))
        self.publishing = publishing
    }

    /// Waits until a slot is free, and returns the slot. Only one call may run at a time.
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

    /// Returns how many downloads of the batch may have connections of their own to a host at once.
    func connections(to origin: HTTPURL.Origin) -> Int { state.withLock { $0.concurrency.connections(to: origin) } }

    /// Records that a host asked for fewer requests or connections, which may lower the number of downloads at once.
    func refused(by origin: HTTPURL.Origin) {
        state.withLock { $0.concurrency.refused(by: origin, now: clock()) }
    }

    private func tryTake() -> Bool {
        state.withLock { state in
            guard !isFull(state) else { return false }
            state.fetching += 1
            state.running += 1
            return true
        }
    }

    private func isFull(_ state: Occupancy) -> Bool {
        state.fetching >= state.concurrency.limit || isCrowded(state)
    }

    /// Returns whether no more downloads may run, waiting ones included. With a limit of one, downloads run one after
    /// another. A resting download counts twice, because it also keeps a journal open.
    private func isCrowded(_ state: Occupancy) -> Bool {
        let limit = state.concurrency.limit
        return state.running + state.resting >= (limit > 1 ? limit + publishing : 1)
    }

    private func release(_ change: (inout Occupancy) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return isFull(state) ? nil : state.waiter.take()
        }
        waiter?.resume()
    }
}
