internal import TowlineCore
import Synchronization

/// The offset at which an attempt pauses for a limited time, because another connection may deliver the bytes that
/// follow.
final class HoldPoint: Sendable {
    private let offset = Atomic<Int64>(.max)
    private let end = Atomic<Int64>(0)
    /// The interval after which a paused attempt checks whether it may continue.
    private static let pause = Duration.milliseconds(2)
    private let clock: @Sendable () -> Duration

    init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Sets the offset at which the attempt pauses, and the longest time to wait there. Any thread may call this.
    func wait(at offset: Int64, for time: Duration) {
        end.store(Int64((clock() + time) / .nanoseconds(1)), ordering: .relaxed)
        self.offset.store(offset, ordering: .releasing)
    }

    /// Returns the time to wait before bytes up to offset `end` are taken; `nil` if they can be taken now.
    func delay(before end: Int64) -> Duration? {
        guard end > offset.load(ordering: .acquiring) else { return nil }
        return clock() < .nanoseconds(self.end.load(ordering: .relaxed)) ? Self.pause : nil
    }
}

/// Rate limits, and bytes that arrive through a pipe, without a copy in this process.
extension AttemptWriter {
    /// Counts `count` received bytes, unless a rate limit or the hold point delays them.
    ///
    /// - Returns: the time to wait before the bytes can be taken; `nil` if they are counted.
    func takeAllowance(_ count: Int) -> Duration? {
        // Gathered bytes are not written yet. An attempt that stops at the hold point does not wait there.
        let end = min(cursor + Int64(gathered.count + count), limit.load(ordering: .relaxed))
        if let wait = hold.delay(before: end) { return wait }
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

    /// Returns whether the attempt is complete: its segment ends at `end`, and `rest` bytes were received beyond it. If
    /// the response ends with the segment, the attempt waits for the end of the response, and the connection stays
    /// usable.
    func isOver(at end: Int64, leaving rest: Int) -> Bool { cursor >= end && (end < responseEnd || rest > 0) }

    /// Returns whether the next bytes need no inspection and may come through a pipe: those before the resume point are
    /// compared, no digest is computed, no bytes wait, no rate limit applies, and the sink is a file that takes pipes.
    var takesPipes: Bool {
        isWanted && cursor >= start && digest == nil && stage.isEmpty && gathered.isEmpty
            && !isLimited && (sink as? any PipeSink)?.takesPipes ?? false
    }

    private var isLimited: Bool { limiters.contains(where: \.isLimited) }

    /// The number of bytes to accept now: the rest of the segment. Under a rate limit that was set meanwhile, at most
    /// 16 KiB, a usual buffer of a transport.
    var wanted: Int64 {
        min(max(0, limit.load(ordering: .relaxed) - cursor), isLimited ? Int64(WriteStage.piece) : .max)
    }

    func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition {
        if let wait = takeAllowance(count) { return .pauseFor(wait) }
        guard let sink = sink as? any PipeSink else { return stop(with: .cancelled) }
        do throws(TowlineError) {
            let end = limit.load(ordering: .relaxed)
            let taken = Int(min(Int64(count), max(0, end - cursor)))
            if taken > 0 {
                try sink.write(from: pipe, count: taken, at: cursor)
                try advance(by: taken)
            }
            return isOver(at: end, leaving: count - taken) ? stop(with: .stopped) : .consumed
        } catch {
            return stop(with: .sinkFailed(error))
        }
    }
}
