/// When a sync begins that many small files are to be served by: at once, or in a moment, when more wait for the same.
///
/// A sync costs about the same for one file and for a hundred, and while one is under way the next files come. Where few
/// come meanwhile, each sync would serve few, and whoever comes waits for many: what databases call group commit, and solve
/// by a short wait (PostgreSQL's `commit_delay`, MySQL's `binlog_group_commit_sync_delay`). Nobody waits longer for company than
/// the last sync took.
package struct GroupCommit: Sendable {
    /// So many are not waited for: whoever is alone waits for nobody.
    private static let few = 4
    /// For more nobody waits: half of those that may wait for the disk, so that as many come while they are served.
    package static let enough = BatchConcurrency.mostPublishing / 2
    private let longest: Duration
    /// For less no thread sleeps.
    private static let shortest = Duration.milliseconds(1)
    /// After so long the last sync says nothing about the next.
    private static let memory = Duration.milliseconds(50)

    private var last: (count: Int, took: Duration, end: Duration)?

    /// - Parameter longest: nobody waits longer than that.
    package init(longest: Duration = .milliseconds(10)) { self.longest = longest }

    /// So many were served by one sync, from then to then.
    package mutating func served(_ count: Int, from began: Duration, to end: Duration) {
        last = (count, end - began, end)
    }

    /// How long to wait for more where so many wait; `nil`: not at all.
    package func patience(waiting: Int, at now: Duration) -> Duration? {
        guard let last, last.count >= Self.few, now - last.end < Self.memory, waiting < Self.enough else { return nil }
        guard last.took >= Self.shortest else { return nil }
        return min(last.took, longest)
    }
}
