/// Decides when a sync (fsync) for many small files begins: immediately, or after a short wait, so that it serves more
/// files (docs/internals/group-syncs.md). Databases call this group commit.
package struct GroupCommit: Sendable {
    /// The next sync to disk waits for more files only if the last sync served at least this number of files. A single
    /// file never waits for others.
    private static let few = 4
    /// The number of files waiting for a sync to disk that makes the sync begin immediately: half of the files that may
    /// wait, so that as many can arrive during the sync.
    package static let enough = BatchConcurrency.mostPublishing / 2
    private let longest: Duration
    /// The next sync to disk waits for more files only if the last sync took at least this time: a thread cannot sleep
    /// for a shorter time.
    private static let shortest = Duration.milliseconds(1)
    /// The time after the end of a sync during which its number of files and its duration predict the next sync.
    private static let memory = Duration.milliseconds(50)

    private var last: (count: Int, took: Duration, end: Duration)?

    /// Creates a policy without a known sync, so that the first sync begins immediately.
    ///
    /// - Parameter longest: the maximum wait for more files before a sync begins.
    package init(longest: Duration = .milliseconds(10)) { self.longest = longest }

    /// Records that one sync to disk served `count` files, from the time `began` to the time `end`. `patience` predicts
    /// the next sync from these values.
    package mutating func served(_ count: Int, from began: Duration, to end: Duration) {
        last = (count, end - began, end)
    }

    /// Returns how long to wait for more files before the next sync to disk if `waiting` files wait for it; `nil`:
    /// begin the sync immediately.
    package func patience(waiting: Int, at now: Duration) -> Duration? {
        guard let last, last.count >= Self.few, now - last.end < Self.memory, waiting < Self.enough else { return nil }
        guard last.took >= Self.shortest else { return nil }
        return min(last.took, longest)
    }
}
