/// Decides when a sync (fsync) for many small files begins: at once, or after a short wait, so that it serves more
/// files (docs/internals/group-syncs.md). Databases call this group commit.
package struct GroupCommit: Sendable {
    /// The minimum number of files in the last sync that causes a wait. A single file never waits for others.
    private static let few = 4
    /// The number of waiting files that makes a sync begin at once: half of the files that may wait for the disk, so
    /// that as many can arrive during the sync.
    package static let enough = BatchConcurrency.mostPublishing / 2
    private let longest: Duration
    /// The shortest time that a thread sleeps.
    private static let shortest = Duration.milliseconds(1)
    /// The time after the end of a sync until its number of files and its duration no longer predict the next one.
    private static let memory = Duration.milliseconds(50)

    private var last: (count: Int, took: Duration, end: Duration)?

    /// - Parameter longest: the maximum wait for more files before a sync begins.
    package init(longest: Duration = .milliseconds(10)) { self.longest = longest }

    /// Records that one sync served `count` files, from the time `began` to the time `end`.
    package mutating func served(_ count: Int, from began: Duration, to end: Duration) {
        last = (count, end - began, end)
    }

    /// Returns how long to wait for more files before the next sync if `waiting` files wait for it; `nil`: begin the
    /// sync at once.
    package func patience(waiting: Int, at now: Duration) -> Duration? {
        guard let last, last.count >= Self.few, now - last.end < Self.memory, waiting < Self.enough else { return nil }
        guard last.took >= Self.shortest else { return nil }
        return min(last.took, longest)
    }
}
