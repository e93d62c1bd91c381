internal import TowlineCore
import Synchronization

/// The progress of one attempt, which other threads read, and the limits that they set for it.
///
/// Every value is atomic, so the network thread shares no lock with other threads, except that of a rate limit.
final class FlowControl: Sendable {
    /// The file offset of the next byte to write: all bytes from the start of the attempt's range to it are written.
    /// `nowhere` until writing begins, because a paused response may still get another range.
    private let position = Atomic<Int64>(FlowControl.nowhere)
    /// The value of `position` before the attempt writes to the part file.
    private static let nowhere: Int64 = -1
    /// The number of body bytes that the attempt has received.
    private let received = Atomic<Int64>(0)
    /// `true` while a write waits until another process reads the output, or a limit delays received bytes.
    private let isHeldBack = Atomic<Bool>(false)
    /// The file offset at which the attempt stops. Other threads lower it when another request takes over the end of
    /// the range; each change is an atomic minimum, so that two concurrent ones both have effect.
    private let limit: Atomic<Int64>
    /// The file offset at which the attempt pauses until the time `holdEnd`, because another request may deliver the
    /// bytes after it sooner; `.max` for no pause.
    private let holdOffset = Atomic<Int64>(.max)
    /// The time at which the pause at `holdOffset` ends, in nanoseconds of `clock`.
    private let holdEnd = Atomic<Int64>(0)
    private let limiters: [RateLimiter]
    private let clock: @Sendable () -> Duration

    /// The interval after which an attempt that pauses at `holdOffset` checks again whether it may continue.
    private static let pause = Duration.milliseconds(2)

    init(limit: Int64, limiters: [RateLimiter], clock: @escaping @Sendable () -> Duration) {
        self.limit = Atomic(limit)
        self.limiters = limiters
        self.clock = clock
    }

    // MARK: From any thread

    /// The file offset that the attempt has written up to, and the number of bytes it has received. The
    /// `TransferStateMachine` reads them to detect slow and stalled requests.
    var progress: AttemptProgress {
        let position = position.load(ordering: .acquiring)
        return AttemptProgress(
            position: position == Self.nowhere ? nil : position, received: received.load(ordering: .relaxed),
            isHeldBack: isHeldBack.load(ordering: .relaxed))
    }

    /// Makes the attempt stop at the file offset `end`, because another request delivers the bytes after it. Bytes that
    /// were already written beyond it stay.
    func shrink(to end: Int64) { limit.min(end, ordering: .relaxed) }

    /// Makes the attempt pause at the file offset `offset` for at most `time`, because another request may deliver the
    /// bytes that follow sooner.
    func hold(at offset: Int64, for time: Duration) {
        holdEnd.store(Int64((clock() + time) / .nanoseconds(1)), ordering: .relaxed)
        holdOffset.store(offset, ordering: .releasing)
    }

    /// Sets the byte range that the attempt writes to the file, instead of the planned one. Its start becomes the
    /// written position.
    func assign(_ range: ByteRange) {
        written(upTo: range.lowerBound)
        limit.store(range.upperBound, ordering: .relaxed)
    }

    // MARK: From the thread that receives the bytes

    /// Records that the attempt has written all bytes of its range before the file offset `offset`.
    func written(upTo offset: Int64) { position.store(offset, ordering: .releasing) }

    /// Counts `count` received bytes from the file offset `offset` on, unless a rate limit or a pause that `hold` set
    /// delays them.
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

    /// Returns the remaining time of a pause that `hold` set, if it affects bytes up to the file offset `end`; `nil` if
    /// the attempt may take them now.
    private func delay(before end: Int64) -> Duration? {
        guard end > holdOffset.load(ordering: .acquiring) else { return nil }
        return clock() < .nanoseconds(holdEnd.load(ordering: .relaxed)) ? Self.pause : nil
    }

    /// The file offset at which the attempt stops: the end of its byte range, which other threads may lower.
    var end: Int64 { limit.load(ordering: .relaxed) }

    /// Returns whether a rate limit applies to this attempt: that of its transfer or that of all transfers.
    var isLimited: Bool { limiters.contains(where: \.isLimited) }

    /// The smallest rate limit that applies to this attempt, in bytes per second; `nil` if none applies.
    var rateLimit: Int64? { limiters.lazy.filter(\.isLimited).map(\.rate).filter { $0 > 0 }.min() }

    /// Runs `write`, which may wait until another process reads the output (a pipe). Meanwhile the attempt counts as
    /// held back, so that the time without bytes is not mistaken for a dead connection.
    func heldBack(_ write: () throws(TowlineError) -> Void) throws(TowlineError) {
        isHeldBack.store(true, ordering: .relaxed)
        try write()
        isHeldBack.store(false, ordering: .relaxed)
    }
}
