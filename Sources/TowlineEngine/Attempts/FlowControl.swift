internal import TowlineCore
import Synchronization

/// The flow control of one attempt: the counts that other threads read, and the limits that they set.
///
/// Every value is atomic, so the network thread shares no lock with other threads, except that of a rate limit.
final class FlowControl: Sendable {
    /// The next offset to write. The bytes from the start of the attempt's range to here are written. `nowhere` until
    /// writing begins: a paused response may still get another range.
    private let position = Atomic<Int64>(FlowControl.nowhere)
    private static let nowhere: Int64 = -1
    private let received = Atomic<Int64>(0)
    private let isHeldBack = Atomic<Bool>(false)
    /// The offset at which the attempt stops. Other threads lower it when they assign a part of the segment to another
    /// attempt, perhaps during the head: each store is an atomic minimum, so that neither undoes the other.
    private let limit: Atomic<Int64>
    /// The offset at which the attempt pauses until `holdEnd`, in nanoseconds of `clock`: another attempt may deliver
    /// the bytes after it sooner.
    private let holdOffset = Atomic<Int64>(.max)
    private let holdEnd = Atomic<Int64>(0)
    private let limiters: [RateLimiter]
    private let clock: @Sendable () -> Duration

    /// The interval after which a paused attempt checks whether it may continue: at `holdOffset`, other attempts decide
    /// about the bytes that follow.
    private static let pause = Duration.milliseconds(2)

    init(limit: Int64, limiters: [RateLimiter], clock: @escaping @Sendable () -> Duration) {
        self.limit = Atomic(limit)
        self.limiters = limiters
        self.clock = clock
    }

    // MARK: From any thread

    /// The written and received bytes of the attempt, for the state machine.
    var progress: AttemptProgress {
        let position = position.load(ordering: .acquiring)
        return AttemptProgress(
            position: position == Self.nowhere ? nil : position, received: received.load(ordering: .relaxed),
            isHeldBack: isHeldBack.load(ordering: .relaxed))
    }

    /// Makes the attempt stop at the offset `end`. Bytes already written beyond it are valid and stay.
    func shrink(to end: Int64) {
        limit.min(end, ordering: .relaxed)
    }

    /// Makes the attempt pause at `offset` for at most `time`, because another connection may deliver the bytes that
    /// follow.
    func hold(at offset: Int64, for time: Duration) {
        holdEnd.store(Int64((clock() + time) / .nanoseconds(1)), ordering: .relaxed)
        holdOffset.store(offset, ordering: .releasing)
    }

    /// Sets the range to write, instead of the one that was planned.
    func assign(_ range: ByteRange) {
        written(upTo: range.lowerBound)
        limit.store(range.upperBound, ordering: .relaxed)
    }

    // MARK: From the thread that receives the bytes

    /// Sets the position for `progress`: the bytes before `offset` are written.
    func written(upTo offset: Int64) { position.store(offset, ordering: .releasing) }

    /// Counts `count` received bytes from `offset` on, unless a rate limit or the hold point delays them.
    ///
    /// - Returns: the time to wait before the bytes can be taken; `nil` if they are counted.
    func takeAllowance(_ count: Int, from offset: Int64) -> Duration? {
        // An attempt that stops at the hold point does not wait there.
        if let wait = delay(before: min(offset + Int64(count), end)) { return wait }
        for (index, limiter) in limiters.enumerated() {
            guard let wait = limiter.take(count) else { continue }
            for earlier in limiters[..<index] { earlier.giveBack(count) }
            isHeldBack.store(true, ordering: .relaxed)
            return wait
        }
        isHeldBack.store(false, ordering: .relaxed)
        received.wrappingAdd(Int64(count), ordering: .relaxed)
        return nil
    }

    /// Returns the time to wait at the hold point before bytes up to offset `end` are taken; `nil` if they can be taken
    /// now.
    private func delay(before end: Int64) -> Duration? {
        guard end > holdOffset.load(ordering: .acquiring) else { return nil }
        return clock() < .nanoseconds(holdEnd.load(ordering: .relaxed)) ? Self.pause : nil
    }

    /// The offset at which the attempt stops.
    var end: Int64 { limit.load(ordering: .relaxed) }

    /// Returns whether a rate limit is set.
    var isLimited: Bool { limiters.contains(where: \.isLimited) }

    /// Runs `write`, which may wait for a reader of the output. The attempt counts as held back meanwhile.
    func heldBack(_ write: () throws(TowlineError) -> Void) throws(TowlineError) {
        isHeldBack.store(true, ordering: .relaxed)
        try write()
        isHeldBack.store(false, ordering: .relaxed)
    }
}
