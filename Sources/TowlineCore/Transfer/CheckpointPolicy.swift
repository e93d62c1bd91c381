/// Decides when a checkpoint, a sync of the written bytes to disk, is due (docs/internals/durability.md): after each
/// second or 16 MiB. The interval grows up to 30 s so that syncing takes at most 2 % of the time.
package struct CheckpointPolicy: Hashable, Sendable {
    /// The time when the last checkpoint (a sync of the written bytes to disk) ended.
    private var last: Duration
    /// The total number of bytes received when the last checkpoint began.
    private var lastBytes: Int64 = 0
    /// The duration of the last checkpoint, which decides how long the next one must wait.
    private var cost = Duration.zero
    /// The total number of bytes received when the kernel was last asked to start writing to disk.
    private var writebackBytes: Int64 = 0

    /// Creates a policy. The first checkpoint (a sync of the written bytes to disk) is due a second after `now`, or
    /// after 16 MiB.
    package init(now: Duration) { last = now }

    /// Returns whether a checkpoint, a sync of the written bytes to disk, is due. `bytes` is the total number of bytes
    /// received so far.
    package func isDue(now: Duration, bytes: Int64) -> Bool {
        guard isBehind(bytes: bytes) else { return false }
        let since = now - last
        guard since >= min(cost * 50, .seconds(30)) else { return false }
        return since >= .seconds(1) || bytes - lastBytes >= 16 << 20
    }

    /// The maximum time that a stopped transfer waits for its last checkpoint if the process is about to end, which
    /// must take at most two seconds. An unfinished checkpoint loses bytes only if the machine goes down as well.
    package static let patienceAtExit = Duration.milliseconds(800)

    /// The maximum time that a stopped or failed transfer waits for its last checkpoint if the process continues: a
    /// disk that no longer responds must not delay a pause forever.
    package static let patienceAtEnd = Duration.seconds(30)

    /// Returns whether a last checkpoint (a sync to disk) is likely to take less than `patienceAtExit`, judged by the
    /// duration of the one before it. Otherwise, a stopping transfer omits it.
    package var isQuick: Bool { cost < Self.patienceAtExit }

    /// Returns whether bytes arrived since the last checkpoint (sync to disk), so that another one is useful. `bytes`
    /// is the total number received so far.
    package func isBehind(bytes: Int64) -> Bool { bytes > lastBytes }

    /// Returns whether the kernel should start writing to disk: 8 MiB arrived since this last returned `true`. `bytes`
    /// is the total received so far. Otherwise the kernel would not start between checkpoints, and the last sync would
    /// write all bytes.
    package mutating func startsWriteback(bytes: Int64) -> Bool {
        guard bytes - writebackBytes >= 8 << 20 else { return false }
        writebackBytes = bytes
        return true
    }

    /// Records a completed checkpoint (sync to disk), which decides when the next one is due. `start` and `now`: the
    /// times when it began and ended. `bytes`: the total number of bytes received when it began.
    package mutating func completed(start: Duration, now: Duration, bytes: Int64) {
        last = now
        lastBytes = bytes
        cost = now - start
    }
}
