import Testing
import TowlineCore

@Suite("A transfer with readers while it runs")
struct TransferReaderTests {
    private static let middle = ByteRange(40 << 20, 48 << 20)

    private func running(_ count: Int, tag: String = "\"a\"") throws -> TransferScript {
        var script = try TransferScript { $0.options.connections = count }
        script.begin(length: TransferScript.length, position: 1 << 20, tag: tag)
        for plan in script.plans.dropFirst() { script.give(plan) }
        script.feed(.tick)
        return script
    }

    /// Returns whether every byte is exactly one of written, missing or leased.
    private func isWhole(_ script: TransferScript) -> Bool {
        let leases = script.plans.compactMap { script.machine.ledger.lease(of: $0.id) }
        var all = TransferContent(of: script.machine).written
        for lease in leases { all.insert(lease) }
        return all.ranges == [ByteRange(0, TransferScript.length)]
    }

    @Test("the single connection moves to the range that a reader needs, and returns afterwards")
    func oneConnection() throws {
        var script = try running(1)
        script.feed(.wanted([Self.middle]))
        #expect(script.fresh.contains(.cancel(script.plans[0].id)))
        #expect(script.last.lease == ByteRange(Self.middle.lowerBound, TransferScript.length))
        script.endCancelled()
        let reading = script.last
        script.give(reading)
        // The connection stays while it is near the window, however the window moves.
        for step in 1...8 {
            script.now = .seconds(step)
            script.write(reading, to: Self.middle.lowerBound + Int64(step) << 20)
            let here = Self.middle.lowerBound + Int64(step) << 20
            script.feed(.wanted([ByteRange(here - (1 << 18), here + (8 << 20))]))
        }
        #expect(script.plans.count == 2)
        // After the reader leaves, the connection continues to the end; the gap is fetched afterwards.
        script.feed(.wanted([]))
        script.write(reading, to: TransferScript.length)
        script.end(reading, .complete(.delimited))
        #expect(script.last.lease == ByteRange(1 << 20, Self.middle.lowerBound))
    }

    @Test("a range that arrives soon anyway is awaited")
    func nearby() throws {
        var script = try running(1)
        script.feed(.wanted([ByteRange(1 << 20, 9 << 20)]))
        script.feed(.wanted([ByteRange((1 << 20) + (256 << 10), 9 << 20)]))
        #expect(script.plans.count == 1)
    }

    @Test("one of several connections moves to the range, the others stay")
    func severalConnections() throws {
        var script = try running(4)
        #expect(script.plans.count == 4)
        let target = ByteRange(script.plans.last!.lease.lowerBound + (8 << 20), TransferScript.length)
        script.feed(.wanted([target]))
        let cancelled = script.fresh.filter { if case .cancel = $0 { true } else { false } }
        #expect(cancelled.count == 1)
        #expect(script.last.lease.lowerBound == target.lowerBound)
        script.endCancelled()
        script.feed(.tick)
        // The rest of the moved connection's segment is leased or missing; no byte is lost or leased twice.
        #expect(script.plans.count == 5)
        let leases = script.plans.compactMap { script.machine.ledger.lease(of: $0.id) }
        #expect(leases.reduce(0) { $0 + $1.count } == ByteRangeSet(leases).count)
    }

    @Test("two readers and one connection: the more urgent first, then the other")
    func twoReaders() throws {
        var script = try running(1)
        let end = ByteRange(60 << 20, 61 << 20)
        script.feed(.wanted([end, Self.middle]))
        script.endCancelled()
        let first = script.last
        #expect(first.lease.lowerBound == end.lowerBound)
        script.give(first)
        script.feed(.tick)
        #expect(script.plans.count == 2)
        script.now = .seconds(1)
        script.write(first, to: end.upperBound)
        script.feed(.tick)
        #expect(script.last.lease.lowerBound == Self.middle.lowerBound)
    }

    @Test("no connection moves without proof that two parts belong together")
    func weak() throws {
        var script = try running(1, tag: "W/\"a\"")
        script.feed(.wanted([Self.middle]))
        #expect(script.plans.count == 1)
    }

    @Test("a reader before the first answer is served with it")
    func early() throws {
        var script = try TransferScript { $0.options.connections = 2 }
        script.feed(.begin(nil))
        script.feed(.wanted([Self.middle]))
        script.answer(
            206,
            [("Content-Range", "bytes 0-\(TransferScript.length - 1)/\(TransferScript.length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        #expect(script.plans.contains { $0.lease.lowerBound == Self.middle.lowerBound })
        #expect(isWhole(script))
    }

    @Test("discarded bytes begin a new generation, bytes fetched again do not")
    func generations() throws {
        var script = try running(1)
        #expect(TransferContent(of: script.machine).generation == 0)
        script.end(cut())
        script.now = .seconds(5)
        script.feed(.tick)
        script.give(script.last)
        #expect(TransferContent(of: script.machine).generation == 0)
        script.now = .seconds(6)
        script.end(.overlapDiffers)
        script.endCancelled()
        #expect(TransferContent(of: script.machine).generation == 1)
    }

    @Test func aShortMoveOfAReaderThatDoesNotWaitIsNoNews() {
        let old = ByteRange(0, 8 << 20)
        #expect(!ReadWindow.isNews(ByteRange(1 << 19, (8 << 20) + (1 << 19)), after: old, isWaiting: false))
        #expect(ReadWindow.isNews(ByteRange(1 << 19, (8 << 20) + (1 << 19)), after: old, isWaiting: true))
        #expect(ReadWindow.isNews(ByteRange(1 << 20, 8 << 20), after: old, isWaiting: false))
        #expect(ReadWindow.isNews(ByteRange(0, 9 << 20), after: old, isWaiting: false))
        #expect(ReadWindow.isNews(ByteRange(0, 1), after: ByteRange(5, 5), isWaiting: false))
    }
}
