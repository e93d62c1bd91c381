internal import TowlineCore
import Synchronization

/// The slots that limit how many downloads of a batch run (docs/internals/list-concurrency.md): those that receive
/// bytes, and some more that only wait for the disk, for their next request or for a host that does not respond.
///
/// Downloads that have not begun yet get slots before others take their lent slots back.
final class BatchSlots: Sendable {
    /// The numbers of the batch's downloads that receive bytes or wait, and the call of `take` that waits for a free
    /// slot.
    struct Occupancy {
        var concurrency: BatchConcurrency
        /// The number of downloads that receive bytes or wait for them, without those that lend their slots to others.
        var fetching = 0
        /// The number of downloads that have begun and not ended, including those that only wait.
        var running = 0
        /// The number of downloads that wait for their next HTTP requests and lend their slots to other downloads
        /// meanwhile.
        var resting = 0
        /// The hosts (origins) of recent HTTP requests, each with `true` if its last request got no response. At most
        /// `mostOrigins` hosts are kept.
        var silence: [HTTPURL.Origin: Bool] = [:]
        /// The suspended call of `take`, which waits for a free slot; `nil` if none waits. The code that sets this to
        /// `nil` must resume the call, once.
        var waiter: UnsafeContinuation<Void, Never>?
    }

    /// The right of one download to run in the batch. It no longer counts as receiving when its bytes are complete, and
    /// is released permanently when the download has ended.
    final class Slot: Sendable {
        /// The current phase of the download that has this slot, such as waiting. Changes only under the lock of
        /// `state`.
        private enum Phase: UInt8, AtomicRepresentable {
            case fetching
            /// The download waits for its next HTTP request, or for the response of a host that does not respond, and
            /// other downloads may use its slot meanwhile.
            case resting
            /// The download receives no more bytes, because they are complete or it has ended. Another download may
            /// begin.
            case fetched
        }

        private let slots: BatchSlots
        /// The time at which the download began, in nanoseconds of the monotonic clock; `begin` sets it.
        private let began = Atomic<Int64>(0)
        private let phase = Atomic<Phase>(.fetching)
        /// `true` after `isLong` recorded that the file of the download is long.
        private let isTakenByLong = Atomic<Bool>(false)

        fileprivate init(_ slots: BatchSlots) { self.slots = slots }

        /// Records the current time as the start of the download. Called after its entry was read, because waiting for
        /// the list is not part of a download.
        func begin() { began.store(Int64(slots.clock() / .nanoseconds(1)), ordering: .relaxed) }

        /// Records that the bytes of the download from the host `origin` are complete, and how long they took, which
        /// determines how many downloads run at once. `sharing`: whether its request shared a connection.
        func fetched(_ sharing: ConnectionSharing, from origin: HTTPURL.Origin? = nil) {
            end { state, duration, now in
                state.concurrency.fetched(after: duration, sharing, from: origin, now: now)
            }
        }

        /// Releases the slot of a list entry that runs no download, for example because it is not valid. No duration is
        /// recorded.
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

        /// Records that an HTTP request to a host failed, which may lower the number of downloads that run at once.
        func failed(at origin: HTTPURL.Origin) {
            slots.state.withLock { $0.concurrency.failed(at: origin, now: slots.clock()) }
        }

        /// Records that the file of the download is long. The download then does not lend its slot to others while it
        /// waits for its next request.
        func isLong() {
            slots.state.withLock { state in
                guard phase.load(ordering: .relaxed) == .fetching, !isTakenByLong.exchange(true, ordering: .relaxed)
                else { return }
                state.concurrency.tookUpLong(1)
            }
        }

        /// Lends the slot to other downloads until the next HTTP request of this one, if `wait` is long enough and
        /// others can use it.
        ///
        /// - Parameters:
        ///   - isAsked: `true` if the server asked for the wait.
        ///   - hasResponse: `true` if a response continues after the wait, with or without a free slot. A long file
        ///     then lends its slot, too.
        /// - Returns: `true` if the slot was lent. Call `takeBack` before the next request.
        func rest(for wait: Duration, isAsked: Bool, hasResponse: Bool = false) -> Bool {
            var rests = false
            slots.release { state in
                let isLong = isTakenByLong.load(ordering: .relaxed) && !hasResponse
                guard phase.load(ordering: .relaxed) == .fetching,
                    state.concurrency.leavesPlace(for: wait, isAsked: isAsked, isLong: isLong)
                else { return }
                phase.store(.resting, ordering: .relaxed)
                countLong(-1, &state)
                state.fetching -= 1
                state.resting += 1
                rests = true
            }
            return rests
        }

        /// Takes the lent slot back for the next HTTP request of this download. Downloads that have not begun yet get
        /// slots first, while more may run.
        ///
        /// - Parameter anyway: `true` if the request already runs: the slot is then taken back even if none is free.
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
                countLong(1, &state)
                state.fetching += 1
                // The time before the wait does not count as a part of the download's duration.
                begin()
            }
            return isTaken
        }

        /// Returns whether the last HTTP request to a host got no response. A download that waits for such a host may
        /// lend its slot to others.
        func isSilent(_ origin: HTTPURL.Origin) -> Bool { slots.state.withLock { $0.silence[origin] ?? false } }

        /// Records whether the last HTTP request to a host got no response (`silence`). A download that waits for such
        /// a host may lend its slot to others.
        func note(silence: Bool, of origin: HTTPURL.Origin) {
            slots.state.withLock { state in
                guard state.silence[origin] != silence else { return }
                if state.silence.count >= BatchSlots.mostOrigins { state.silence = [:] }
                state.silence[origin] = silence
            }
        }

        /// Returns whether no HTTP request to a host has got a response or failed yet. Such a host counts as one that
        /// does not respond after a short wait for its first response.
        func isUnknown(_ origin: HTTPURL.Origin) -> Bool { slots.state.withLock { $0.silence[origin] == nil } }

        /// Changes the number of long files that receive bytes, if this download is one.
        private func countLong(_ number: Int, _ state: inout Occupancy) {
            if isTakenByLong.load(ordering: .relaxed) { state.concurrency.tookUpLong(number) }
        }

        private func end(_ note: (inout Occupancy, Duration, Duration) -> Void) {
            let now = slots.clock()
            slots.release { state in
                let last = phase.exchange(.fetched, ordering: .relaxed)
                if last == .resting { state.resting -= 1 }
                guard last == .fetching else { return }
                state.fetching -= 1
                countLong(-1, &state)
                note(&state, now - .nanoseconds(began.load(ordering: .relaxed)), now)
            }
        }
    }

    let state: Mutex<Occupancy>
    /// The maximum number of hosts (origins) in `Occupancy.silence`, which records whether hosts respond.
    private static let mostOrigins = 10_000
    /// The number of downloads that may run while they only wait for the disk or for their next requests, in addition
    /// to those that receive bytes.
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

    /// Waits until one more download may run, and returns its slot. Only one call may run at a time.
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

    /// Returns the maximum number of downloads of the batch that may have connections of their own to a host at the
    /// same time.
    func connections(to origin: HTTPURL.Origin) -> Int { state.withLock { $0.concurrency.connections(to: origin) } }

    /// Records that a host asked for fewer requests or connections, for example with 429, which may lower the number of
    /// downloads that run at once.
    func refused(by origin: HTTPURL.Origin) { state.withLock { $0.concurrency.refused(by: origin, now: clock()) } }

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

    /// Returns whether no more downloads may run, those that wait included. A download that lends its slot counts
    /// twice, because its journal stays open; with a limit of one, downloads run one after another.
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
