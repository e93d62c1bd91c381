import Testing
import TowlineCore

@Suite struct GroupCommitTests {
    private static func after(_ count: Int, took: Duration) -> GroupCommit {
        var commit = GroupCommit()
        commit.served(count, from: .seconds(10), to: .seconds(10) + took)
        return commit
    }

    @Test func whoIsAloneWaitsForNobody() {
        #expect(GroupCommit().patience(waiting: 1, at: .seconds(10)) == nil)
        #expect(Self.after(3, took: .milliseconds(3)).patience(waiting: 1, at: .milliseconds(10_003)) == nil)
        #expect(Self.after(4, took: .milliseconds(3)).patience(waiting: 1, at: .milliseconds(10_003)) != nil)
    }

    @Test func nobodyWaitsLongerThanTheLastSyncTook() {
        let now = Duration.milliseconds(10_500)
        #expect(Self.after(100, took: .milliseconds(500)).patience(waiting: 1, at: now) == .milliseconds(10))
        var commit = GroupCommit(longest: .seconds(1))
        commit.served(100, from: now - .milliseconds(2), to: now)
        #expect(commit.patience(waiting: 1, at: now) == .milliseconds(2))
    }

    @Test func aQuickSyncIsNotWaitedFor() {
        #expect(Self.after(100, took: .microseconds(999)).patience(waiting: 1, at: .milliseconds(10_003)) == nil)
        #expect(Self.after(100, took: .milliseconds(1)).patience(waiting: 1, at: .milliseconds(10_003)) != nil)
    }

    /// A sync begins at once if half of the possible files wait: the other half arrives meanwhile.
    @Test func moreThanEnoughWaitForNobody() {
        let commit = Self.after(100, took: .milliseconds(3))
        #expect(commit.patience(waiting: 127, at: .milliseconds(10_003)) == .milliseconds(3))
        #expect(commit.patience(waiting: 128, at: .milliseconds(10_003)) == nil)
    }

    @Test func whatWasLongAgoSaysNothing() {
        let commit = Self.after(100, took: .milliseconds(3))
        #expect(commit.patience(waiting: 1, at: .milliseconds(10_052)) != nil)
        #expect(commit.patience(waiting: 1, at: .milliseconds(10_053)) == nil)
    }
}
