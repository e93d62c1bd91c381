internal import TowlineCore
import Synchronization

/// The offset at which an attempt waits for another connection that may bring what follows.
final class HoldPoint: Sendable {
    private let offset = Atomic<Int64>(.max)
    private let end = Atomic<Int64>(0)
    /// After this time an attempt that waits looks again.
    private static let pause = Duration.milliseconds(2)
    private let clock: @Sendable () -> Duration

    init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Sets the place, from any thread.
    func wait(at offset: Int64, for time: Duration) {
        end.store(Int64((clock() + time) / .nanoseconds(1)), ordering: .relaxed)
        self.offset.store(offset, ordering: .releasing)
    }

    /// Returns how long to wait before bytes up to `end` are taken; `nil`: not at all.
    func delay(before end: Int64) -> Duration? {
        guard end > offset.load(ordering: .acquiring) else { return nil }
        return clock() < .nanoseconds(self.end.load(ordering: .relaxed)) ? Self.pause : nil
    }
}

/// What limits let through, and bytes that come unseen.
extension AttemptWriter {
    /// Counts bytes that came, unless a limit holds them back.
    ///
    /// - Returns: how long, if it does.
    func takeAllowance(_ count: Int) -> Duration? {
        // Gathered bytes are not written yet. An attempt that ends at its place waits no longer.
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

    /// Whether a segment ends at `end`, after so many bytes beyond it came. Where the response ends with the segment, its own end
    /// comes by itself and the connection lives on.
    func isOver(at end: Int64, leaving rest: Int) -> Bool { cursor >= end && (end < responseEnd || rest > 0) }

    /// Where nothing needs to be seen: the overlap was compared, no digest of the response is to be computed, nothing waits, and
    /// what comes goes to a file as fast as it comes.
    var takesPipes: Bool {
        isWanted && cursor >= start && digest == nil && stage.isEmpty && gathered.isEmpty
            && !isLimited && (sink as? any PipeSink)?.takesPipes ?? false
    }

    private var isLimited: Bool { limiters.contains(where: \.isLimited) }

    /// Under a limit, which came meanwhile, no more at once than a transport hands over else.
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
