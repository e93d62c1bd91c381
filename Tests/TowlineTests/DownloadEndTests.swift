import Foundation
import Testing
import TowlineEngine

@testable import Towline
@testable import TowlineCore

/// The state of a download after its transfer ended, and the delay before a retry.
@Suite struct DownloadEndTests {
    private static let id = DownloadID(milliseconds: 1, random: (0, 1))

    private static func download(_ change: (inout DownloadRequest) -> Void = { _ in }) throws -> LiveDownload {
        var request = DownloadRequest(
            from: try #require(URL(string: "http://a.example/x")), to: .file(URL(fileURLWithPath: "/a/x")))
        change(&request)
        let record = RegisteredDownload(
            id: id, source: "http://a.example/x", host: "http://a.example:80", directory: "/a", name: "x",
            identity: "x", state: .active, addedAt: 1)
        return LiveDownload(record, request, hub: SnapshotHub(), logger: nil)
    }

    private static func failure(
        _ error: TowlineError, _ waits: inout RetryWaits, of download: LiveDownload
    ) -> DownloadEnd {
        var end = DownloadEnd(of: download)
        end.fail(error, &waits, Downloader.Configuration())
        end.obeyCommand()
        return end
    }

    @Test func consecutiveNetworkFailuresWaitLongerAndAreNotedOnce() throws {
        let download = try Self.download()
        var waits = RetryWaits()
        let error = TowlineError(.transient, "no route to host")
        let ends = (0..<2).map { _ in Self.failure(error, &waits, of: download) }
        for end in ends {
            #expect(end.state == .waiting && end.wait?.code == .network)
            #expect(end.change.state?.reason == "no route to host")
        }
        #expect(ends.map { $0.change.entries.count } == [1, 0])
        #expect(waits.count(of: Self.id) == 2)
    }

    @Test func theRegistryKeepsTheNetworkFailureOfAnError() throws {
        var waits = RetryWaits()
        let error = TowlineError(.transient, "no route to host", networkFailure: .connectionFailed)
        let end = Self.failure(error, &waits, of: try Self.download { $0.maximumTries = 1 })
        var record = try Self.download().record
        record.state = .failed
        (record.reasonCode, record.reason) = (end.change.state?.reasonCode, end.change.state?.reason)
        #expect(DownloadSnapshot(record).error == error)
    }

    @Test func aNumberOfAttemptsMakesATransientErrorFinal() throws {
        var waits = RetryWaits()
        let end = Self.failure(
            TowlineError(.transient, "reset", status: 503), &waits, of: try Self.download { $0.maximumTries = 1 })
        #expect(end.state == .failed && end.wait == nil)
        #expect(end.change.state?.status == 503 && end.change.state?.endedAt != nil)
    }

    @Test(
        arguments: [(.pause, .paused), (.cancel, .cancelled), (.restart, .queued), (.remove, .paused), (.close, nil)]
            as [(LiveDownload.Intent, RegisteredState?)])
    func aCommandDecidesTheState(_ intent: LiveDownload.Intent, _ state: RegisteredState?) throws {
        let download = try Self.download()
        download.end(intent)
        var waits = RetryWaits()
        let end = Self.failure(TowlineError(.transient, "reset"), &waits, of: download)
        #expect(end.intent == intent && end.state == state && end.wait == nil)
        #expect(intent.endState == state)
    }

    /// The remaining time of a wait decreases all the time. Only a new end of the wait is a change.
    @Test func theRemainingTimeOfAWaitIsNotAChange() throws {
        let download = try Self.download()
        var transfer = TransferSnapshot()
        transfer.state = .waiting(.retry)
        transfer.wait = .init(remaining: .seconds(10), reason: "the server is busy")
        download.progressed(transfer)
        let end = try #require(download.snapshot.waitsUntil)
        for milliseconds in stride(from: -400, through: 400, by: 100) {
            transfer.wait?.remaining = .seconds(10) + .milliseconds(milliseconds)
            download.progressed(transfer)
            #expect(download.takeDirtySnapshot() == nil)
        }
        #expect(download.snapshot.waitsUntil == end)
        transfer.wait?.remaining = .seconds(20)
        download.progressed(transfer)
        #expect(download.takeDirtySnapshot()?.waitsUntil.map { $0.timeIntervalSince(end) > 9 } == true)
    }

    @Test func theDelayDoublesUpToFiveMinutes() {
        var waits = RetryWaits()
        let configuration = Downloader.Configuration()
        let delays = (0..<8).map { _ in waits.nextDelay(Self.id, .network, configuration) }
        #expect(delays == [5, 10, 20, 40, 80, 160, 300, 300].map { Duration.seconds($0) })
        let forSpace = waits.nextDelay(Self.id, .diskSpace, configuration)
        #expect(forSpace == .seconds(10))
        waits.resetCount(of: Self.id)
        let first = waits.nextDelay(Self.id, .network, configuration)
        #expect(first == .seconds(5))
    }

    /// The registry could not be written when the wait ended.
    @Test func aRestoredWaitDoesNotReplaceANewOne() {
        var waits = RetryWaits()
        let (old, new) = (Duration.seconds(100), Duration.seconds(160))
        let other = DownloadID(milliseconds: 2, random: (0, 1))
        for id in [Self.id, other] { waits.add(id, RetryWaits.Wait(code: .network, until: old)) }
        let removed = waits.matching { $0.until <= old }
        waits.remove(removed.keys)
        waits.add(other, RetryWaits.Wait(code: .server, until: new))
        waits.restore(removed, until: old + .seconds(1))
        let expected = [
            Self.id: RetryWaits.Wait(code: .network, until: old + .seconds(1)),
            other: RetryWaits.Wait(code: .server, until: new),
        ]
        #expect(waits.matching { _ in true } == expected)
    }
}
