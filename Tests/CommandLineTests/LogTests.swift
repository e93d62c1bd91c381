import Foundation
import Testing

@testable import TowlineCore
@testable import TowlineEngine
@testable import tow

/// Tests plain lines and JSON, by value.
struct LogTests {
    private func options() throws -> DownloadOptions {
        DownloadOptions(
            url: try HTTPURL(parsing: "http://u:canary@a.test/f?token=canary"), target: .file(directory: ".", name: nil)
        )
    }

    private func snapshot(_ held: Int64) -> TransferSnapshot {
        var snapshot = TransferSnapshot()
        snapshot.state = .downloading
        snapshot.completeLength = 1000
        snapshot.heldBytes = held
        snapshot.rate = 100
        snapshot.remaining = .seconds(9)
        return snapshot
    }

    // MARK: Plain

    @Test func aLineATenthOfTheWayButNoMoreThanOneASecond() throws {
        var log = PlainLog(detail: .everything)
        log.started(1, try options(), now: .zero)
        for step in 0...100 { log.progressed(1, snapshot(Int64(step) * 10), now: .milliseconds(step * 50)) }
        let lines = log.take().split(separator: "\n")
        #expect(lines.first == "f: 20%, 200 B of 1000 B, 100 B/s, 9 s left")
        #expect(lines.count == 5)
    }

    @Test func aSlowOneGetsALineInTenSeconds() throws {
        var log = PlainLog(detail: .everything)
        log.started(1, try options(), now: .zero)
        for second in 1...35 { log.progressed(1, snapshot(5), now: .seconds(second)) }
        #expect(log.take().split(separator: "\n").count == 3)
    }

    @Test func aWaitIsSaidOnce() throws {
        var log = PlainLog(detail: .everything)
        log.started(1, try options(), now: .zero)
        var waiting = snapshot(10)
        waiting.state = .waiting(.retry)
        for second in 0..<5 {
            waiting.wait = .init(remaining: .seconds(5 - second), reason: "no connection")
            log.progressed(1, waiting, now: .seconds(second))
        }
        #expect(log.take() == "f: no connection; retrying in 5 s\n")
    }

    @Test func quietSaysFailuresAlone() throws {
        var log = PlainLog(detail: .failures)
        log.started(1, try options(), now: .zero)
        log.noticed(1, TransferNotice(.warning, .restarted, "starts over"))
        log.progressed(1, snapshot(900), now: .seconds(30))
        log.ended(1, .failure(TowlineError(.notFound, "no such file")), now: .zero)
        #expect(log.take() == "tow: no such file\n")
        #expect(log.take() == "")
    }

    @Test func severalEndWithASummary() throws {
        var log = PlainLog(detail: .withoutProgress)
        for number in 1...3 { log.started(number, try options(), now: .zero) }
        var broken = snapshot(500)
        broken.receivedBytes = 1024
        log.progressed(2, broken, now: .seconds(1))
        let whole = CompletedTransfer(outcome: .streamed(length: 3072), receivedBytes: 3072)
        log.ended(1, .success(whole), now: .seconds(1))
        log.ended(2, .failure(TowlineError(.notFound, "no such file")), now: .seconds(1))
        log.ended(3, .failure(TowlineError(.cancelled, "interrupted")), now: .seconds(2))
        _ = log.take()
        log.closed(exitStatus: 130, interrupted: true, now: .seconds(2))
        #expect(
            log.take() == """
                1 done, 1 failed, 1 interrupted; 4.0 KiB in 2 s, 2.0 KiB/s
                Interrupted. Run the same command again to resume.

                """)
    }

    @Test func whatWasThereIsCountedByItself() {
        var summary = RunSummary()
        let file = PublishedFile(path: "a", length: 3)
        for outcome in [
            CompletedTransfer.Outcome.published(file), .alreadyThere(file), .alreadyThere(file), .upToDate(file),
            .skipped(path: "b"),
        ] { summary.count(.success(CompletedTransfer(outcome: outcome, receivedBytes: 0)), nil) }
        #expect(
            summary.lines(wasInterrupted: false, elapsed: .seconds(2)) == [
                "1 done, 2 already downloaded, 1 up to date, 1 skipped; 0 B in 2 s"
            ])
    }

    /// If no reader takes the lines, the oldest are omitted, and a line reports the omission.
    @Test func linesThatNobodyTakesAreBounded() {
        var log = PlainLog(detail: .everything)
        for number in 0...10_000 { log.noticed(number, TransferNotice(.info, .redirected, "line \(number)")) }
        let lines = log.take().split(separator: "\n")
        #expect(lines.count == 5002 && lines[0].hasPrefix("(older messages are omitted"))
        #expect(lines[1] == "line 5000" && lines[5001] == "line 10000")
    }

    // MARK: JSON

    private func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    @Test(arguments: ["", "\"\\/", "\n\r\t\u{0}\u{1F}\u{7F}\u{9B}", "é😀", "\u{202E}\u{2028}\u{FEFF}\u{E0001}", "a b"])
    func textComesBackAsItWas(_ text: String) throws {
        var object = JSONObject()
        object.add("x", text)
        let value = try JSONSerialization.jsonObject(with: Data(object.closed.utf8)) as? [String: String]
        #expect(value?["x"].map { Array($0.utf8) } == Array(text.utf8))
        #expect(!object.closed.unicodeScalars.contains { $0.properties.generalCategory == .control })
    }

    @Test(arguments: [(0.0, "0.000"), (1.5, "1.500"), (-0.0405, "-0.041"), (86_400, "86400.000")])
    func secondsHaveThreeDecimals(_ seconds: Double, _ expected: String) {
        var object = JSONObject()
        object.add("x", seconds: seconds)
        object.add("y", seconds: .infinity)
        object.add("z", seconds: .nan)
        #expect(object.closed == "{\"x\":\(expected)}")
    }

    @Test func theLifeOfADownload() throws {
        var log = JSONLog()
        log.started(1, try options(), now: .zero)
        log.progressed(1, snapshot(100), now: .milliseconds(10))
        log.noticed(1, TransferNotice(.warning, .restarted, "starts over"))
        log.ended(1, .failure(TowlineError(.notFound, "no such file", status: 404)), now: .seconds(1))
        log.closed(exitStatus: 8)
        let text = log.take()
        #expect(!text.contains("canary"))
        let found = try objects(text)
        #expect(found.map { $0["event"] as? String } == ["started", "progress", "notice", "failed", "ended"])
        #expect(found[1]["heldBytes"] as? Int == 100)
        #expect(found[1]["state"] as? String == "downloading")
        #expect(found[3]["code"] as? String == "notFound")
        #expect(found[3]["exitStatus"] as? Int == 8)
        #expect(found[3]["httpStatus"] as? Int == 404)
        #expect(found[4]["failed"] as? Int == 1)
    }

    @Test func progressComesFourTimesASecondAtMost() throws {
        var log = JSONLog()
        log.started(1, try options(), now: .zero)
        for step in 0..<1000 { log.progressed(1, snapshot(Int64(step)), now: .milliseconds(step)) }
        #expect(try objects(log.take()).count == 1 + 4)
    }

    @Test func aReaderThatDoesNotKeepUpMissesProgressAlone() throws {
        var log = JSONLog()
        log.started(1, try options(), now: .zero)
        for second in 0..<100_000 { log.progressed(1, snapshot(5), now: .seconds(second)) }
        log.noticed(1, TransferNotice(.info, .resumed, "goes on"))
        let text = log.take()
        #expect(text.utf8.count < 2 << 20)
        #expect(try objects(text).last?["event"] as? String == "notice")
    }

    // MARK: Exit status

    @Test func theWorstOfOneKindOrOne() {
        let changed = TowlineError(.changedOnServer, "")
        let full = TowlineError(.diskFull, "")
        let good = CompletedTransfer(outcome: .streamed(length: 0), receivedBytes: 0)
        func status(_ results: [Result<CompletedTransfer, TowlineError>], signal: Int32? = nil) -> Int32 {
            let tally = BatchTally()
            for result in results { tally.count(result) }
            return tally.exitStatus(signal: signal)
        }
        #expect(status([]) == 0)
        #expect(status([.success(good)]) == 0)
        #expect(status([.success(good), .failure(full), .failure(full)]) == 6)
        #expect(status([.failure(changed), .failure(full)]) == 1)
        #expect(status([.success(good)], signal: SIGINT) == 130)
        #expect(status([.failure(full)], signal: SIGTERM) == 143)
        #expect(status([.failure(full)], signal: SIGHUP) == 143)
    }

    // MARK: status

    @Test func aPartIsShownAsAMap() throws {
        let record = DownloadRecord(
            source: "http://a.test/f", resolved: "http://b.test/f", name: "f",
            representation: Representation(completeLength: 6400, entityTag: EntityTag(fieldValue: "\"x\"")),
            checksums: [],
            generation: 1)
        let status = PartStatus(
            path: "f", record: record, written: ByteRangeSet([ByteRange(0, 3200), ByteRange(6350, 6400)]),
            durable: ByteRangeSet([ByteRange(0, 1600)]), lockedBy: 42)
        let lines = status.text(style: ProgressBarTests.ascii).split(separator: "\n")
        #expect(
            lines == [
                "f", "  URL             http://a.test/f", "  redirected to   http://b.test/f",
                "  size            6.3 KiB (6400 bytes)", "  downloaded      3.2 KiB, 50%",
                "  synced to disk  1.6 KiB (kept even after a power failure)", "  missing         3.1 KiB in 1 gap",
                "  version         ETag \"x\"", "  running         yes, by process 42",
                "  " + Substring(String(repeating: "#", count: 32) + String(repeating: ".", count: 31) + "+"),
            ])
        #expect(try objects(status.json.closed)[0]["heldBytes"] as? Int == 3250)
    }
}
