import Foundation
import Testing
@testable import Towline
import TowlineCore
import TowlineEngine

/// Tests of the snapshots that readers receive.
@Suite struct SnapshotHubTests {
    private static func record(_ state: RegisteredState) -> DownloadSnapshot {
        var record = RegisteredDownload(
            id: DownloadID(milliseconds: 1, random: (1, 1)), source: "http://example.test/file",
            host: "http://example.test", directory: "/", name: "file", identity: "file", addedAt: 0)
        record.state = state
        return DownloadSnapshot(record)
    }

    /// A download ends while a reader subscribes. The reader receives the end and no older snapshot after it.
    @Test(.timeLimit(.minutes(1))) func anEndWhileTheBeginningIsLookedUpIsHeardOf() async {
        let hub = SnapshotHub()
        let (before, after) = (Self.record(.active), Self.record(.finished))
        let stream = await hub.stream(before.id) {
            hub.publish(after)
            return before
        }
        hub.end(before.id)
        var states: [DownloadState] = []
        for await snapshot in stream { states.append(snapshot.state) }
        #expect(states == [.finished])
    }

    /// A snapshot is published while `look` returns an end that is about to be published. The reader receives the end.
    @Test(.timeLimit(.minutes(1))) func anEndThatIsFoundBeforeItIsToldIsHeardOf() async {
        let hub = SnapshotHub()
        let (before, after) = (Self.record(.active), Self.record(.finished))
        let stream = await hub.stream(before.id) {
            hub.publish(before)
            return after
        }
        hub.publish(after)
        hub.end(before.id)
        var states: [DownloadState] = []
        for await snapshot in stream { states.append(snapshot.state) }
        #expect(states == [.finished])
    }

    @Test(.timeLimit(.minutes(1))) func whatIsNotThereEndsAtOnce() async {
        let hub = SnapshotHub()
        for await _ in await hub.stream(Self.record(.active).id, beginningWith: { nil }) {
            Issue.record("there is nothing to tell")
        }
        #expect(!hub.hasReaders)
    }
}
