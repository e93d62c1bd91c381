/// When to make written bytes durable (DESIGN.md §3 rule 2): every second or 16 MiB, stretched up to 30 s so that
/// syncing takes at most 2 % of the time.
package struct CheckpointPolicy: Hashable, Sendable {
    private var last: Duration
    private var lastBytes: Int64 = 0
    private var cost = Duration.zero
    private var writebackBytes: Int64 = 0

    /// The first checkpoint is due a second after `now`.
    package init(now: Duration) { last = now }

    /// Whether a checkpoint is due, `bytes` having been received in all.
    package func isDue(now: Duration, bytes: Int64) -> Bool {
        guard isBehind(bytes: bytes) else { return false }
        let since = now - last
        guard since >= min(cost * 50, .seconds(30)) else { return false }
        return since >= .seconds(1) || bytes - lastBytes >= 16 << 20
    }

    /// So long a transfer waits for its last checkpoint where the process is about to end, which is to be over within
    /// two seconds. What is left undone costs a byte only if the machine goes down as well.
    package static let patienceAtExit = Duration.milliseconds(800)

    /// So long otherwise: a disk that answers no more must not hold a pause for ever.
    package static let patienceAtEnd = Duration.seconds(30)

    /// Whether one more checkpoint at the end is likely to be over soon, as far as those before tell.
    package var isQuick: Bool { cost < Self.patienceAtExit }

    /// Whether anything came since the last checkpoint, `bytes` having been received in all.
    package func isBehind(bytes: Int64) -> Bool { bytes > lastBytes }

    /// Whether what has come since this last said so is worth telling the disk of, `bytes` having been received in all:
    /// from 8 MiB on. Between two checkpoints nothing else makes the kernel begin; the last sync would write it all.
    package mutating func startsWriteback(bytes: Int64) -> Bool {
        guard bytes - writebackBytes >= 8 << 20 else { return false }
        writebackBytes = bytes
        return true
    }

    /// A checkpoint that covers `bytes` began at `start` and is over.
    package mutating func completed(start: Duration, now: Duration, bytes: Int64) {
        last = now
        lastBytes = bytes
        cost = now - start
    }
}
