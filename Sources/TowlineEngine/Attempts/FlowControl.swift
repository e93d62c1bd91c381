internal import TowlineCore
import Synchronization

/// The flow control of one attempt: the counts that other threads read, and the limits that they set.
///
/// Every value is atomic, so the network thread shares no lock with other threads, except that of a rate limit.
final class FlowControl: Sendable {
    /// The offset of the next byte to write: all bytes before it, from the start of the attempt's range, are written.
    /// `nowhere` until writing begins, because a paused response may still get another range.
    private let position = Atomic<Int64>(FlowControl.nowhere)
    private static let nowhere: Int64 = -1
    private let received = Atomic<Int64>(0)
    private let isHeldBack = Atomic<Bool>(false)
    /// The offset at which the attempt stops. Other threads lower it when they assign the end of the range to another
    /// attempt. Each store is an atomic minimum, so that two concurrent changes both have effect.
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

    /// The position and the number of received bytes of the attempt, which the `TransferStateMachine` reads.
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

    /// Sets the byte range that the attempt writes, instead of the planned one, and the written position to its start.
    func assign(_ range: ByteRange) {
        written(upTo: range.lowerBound)
        limit.store(range.upperBound, ordering: .relaxed)
    }

    // MARK: From the thread that receives the bytes

    /// Records that the bytes before `offset` are written, for `progress`.
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

    /// The file offset at which the attempt stops: the end of its byte range.
    var end: Int64 { limit.load(ordering: .relaxed) }

    /// Returns whether a rate limit applies to this attempt: that of its transfer or that of all transfers.
    var isLimited: Bool { limiters.contains(where: \.isLimited) }

    /// Runs `write`, which may wait for a reader of the output. Meanwhile the attempt counts as held back, so that its
    /// pause is not mistaken for a dead connection.
    func heldBack(_ write: () throws(TowlineError) -> Void) throws(TowlineError) {
        isHeldBack.store(true, ordering: .relaxed)
        try write()
        isHeldBack.store(false, ordering: .relaxed)
    }
}
