import Testing
import TowlineCore

@Suite("A transfer over several connections")
struct TransferSegmentTests {

    /// Returns a transfer with `count` connections under way, each of them accepted.
    private func spread(_ count: Int = 4) throws -> TransferScript {
        var script = try TransferScript { $0.options.connections = count }
        script.feed(.begin(nil))
        script.answer(
            206,
            [("Content-Range", "bytes 0-\(TransferScript.length - 1)/\(TransferScript.length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        for plan in script.plans.dropFirst() { script.give(plan) }
        return script
    }

    @Test("shares the file without gaps and without overlaps")
    func shares() throws {
        let script = try spread()
        #expect(script.plans.count == 4)
        let leases = script.plans.compactMap { script.machine.ledger.lease(of: $0.id) }
        #expect(ByteRangeSet(leases).ranges == [ByteRange(0, TransferScript.length)])
        #expect(leases.reduce(0) { $0 + $1.count } == TransferScript.length)
        #expect(script.plans.dropFirst().allSatisfy { $0.field("If-Range") == "\"a\"" })
    }

    @Test("is downloading while all connections are between two segments, and connecting once no byte arrives")
    func betweenSegments() throws {
        var script = try spread()
        #expect(TransferSnapshot(of: &script.machine, now: .zero).state == .downloading)
        script.now = .seconds(5)
        let first = script.plans
        for plan in first { script.write(plan, to: plan.lease.lowerBound + 1_000_000) }
        script.feed(.tick)
        for plan in first { script.end(plan, cut()) }
        #expect(script.plans.count > first.count && script.progress.values.allSatisfy { $0.position == nil })
        #expect(TransferSnapshot(of: &script.machine, now: .milliseconds(5_900)).state == .downloading)
        #expect(TransferSnapshot(of: &script.machine, now: .milliseconds(6_100)).state == .connecting)
    }

    @Test("arrived bytes that wait to be written are not fetched by others", arguments: [0, 25, 60, 100])
    func arrived(percent: Int64) throws {
        let length: Int64 = 4 << 20
        var script = try TransferScript { $0.options.connections = 4 }
        script.feed(.begin(nil))
        let arrived = length * percent / 100
        script.progress[script.plans[0].id] = AttemptProgress(position: nil, received: arrived)
        script.answer(206, [("Content-Range", "bytes 0-\(length - 1)/\(length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        let others = script.plans.dropFirst()
        #expect(others.count == (percent < 100 ? 3 : 0))
        #expect(others.allSatisfy { $0.lease.lowerBound >= arrived })
    }

    @Test("each added connection asks for its own segment and no more", arguments: [2, 5, 16])
    func exact(_ count: Int) throws {
        var script = try spread(count)
        #expect(script.plans.count == count)
        for plan in script.plans.dropFirst() {
            let lease = try #require(script.machine.ledger.lease(of: plan.id))
            #expect(plan.lease == lease)
            #expect(plan.field("Range") == "bytes=\(lease.lowerBound - plan.overlap)-\(lease.upperBound - 1)")
        }
        // Only the first, which asked before the length was known, has to be cut.
        for plan in script.plans { script.write(plan, to: plan.lease.lowerBound + 1) }
        script.write(script.plans[0], to: try #require(script.machine.ledger.lease(of: script.plans[0].id)).upperBound)
        script.feed(.tick)
        let cut = script.actions.compactMap { if case .shrink(let id, _) = $0 { id } else { nil } }
        #expect(Set(cut) == [script.plans[0].id])
    }

    @Test("the end is near when few bytes are missing at the current rate, over several connections")
    func ending() throws {
        var script = try spread(2)
        #expect(!TickPolicy.endsSoon(script.machine))
        for step in 1...30 {
            script.now += .milliseconds(100)
            for plan in script.plans {
                let lower = plan.lease.lowerBound
                script.write(plan, to: lower + Int64(step) << 20)
            }
            script.feed(.tick)
            #expect(TickPolicy.endsSoon(script.machine) == (step >= 29), "step \(step)")
        }
    }

    /// Feeds a transfer that chooses its number of connections: each of up to `limit` connections adds 1 MB/s.
    private func search(
        _ script: inout TransferScript, _ duration: Duration, limit: Int, length: Int64 = TransferScript.length
    ) {
        let end = script.now + duration
        while script.now < end {
            script.now += .milliseconds(50)
            let running = script.plans.filter { script.machine.ledger.lease(of: $0.id) != nil }
            let share = 1_000_000 * min(running.count, limit) / max(1, running.count)
            for plan in running {
                let lower = plan.lease.lowerBound
                let end = script.machine.ledger.lease(of: plan.id)?.upperBound ?? .max
                let received = min((script.progress[plan.id]?.received ?? 0) + Int64(share), end - lower)
                script.progress[plan.id] = AttemptProgress(position: lower + received, received: received)
            }
            script.feed(.tick)
            for plan in running where script.machine.ledger.lease(of: plan.id)?.isEmpty == true {
                script.end(plan, .stopped)
            }
            for plan in script.started(in: script.fresh) { script.give(plan, length: length) }
            script.endCancelled()
        }
    }

    private func alone(length: Int64 = TransferScript.length) throws -> TransferScript {
        var script = try TransferScript { $0.options.connections = nil }
        script.feed(.begin(nil))
        script.give(script.last, length: length)
        script.feed(.prepared)
        return script
    }

    @Test(
        "closes connections that did not pay off unless they end soon, and reports the number that did",
        arguments: [1, 64])
    func sheds(_ factor: Int64) throws {
        var script = try alone(length: factor * TransferScript.length)
        let isSoonDone = factor == 1
        search(&script, .milliseconds(isSoonDone ? 700 : 1300), limit: 2, length: factor * TransferScript.length)
        #expect(script.plans.filter { script.machine.ledger.lease(of: $0.id) != nil }.count == (isSoonDone ? 4 : 2))
        #expect(script.plans.count >= 4, "four were tried")
        #expect(script.actions.contains(.report(.paysOff(2), of: script.last.url.origin)))
        #expect(
            script.actions.allSatisfy { if case .cancel = $0 { false } else { true } }, "bytes under way are received")
    }

    @Test("with a checksum the bytes come from the front, and no two connections fetch the same bytes")
    func front() throws {
        let sum = try Checksum(parsing: "sha256:" + String(repeating: "ab", count: 32))
        var script = try TransferScript {
            $0.options.connections = 4
            $0.options.checksum = sum
        }
        script.feed(.begin(nil))
        script.answer(
            206,
            [("Content-Range", "bytes 0-\(TransferScript.length - 1)/\(TransferScript.length)"), ("ETag", "\"a\"")])
        #expect(HashableContent(of: script.machine) == nil)
        script.feed(.prepared)
        #expect(script.plans.count == 4)
        let leases = script.plans.compactMap { script.machine.ledger.lease(of: $0.id) }
        #expect(leases.map(\.upperBound).max() ?? .max <= 20 << 20, "no connection is far ahead of the others")
        #expect(ByteRangeSet(leases).ranges.count == 1)
        #expect(leases.reduce(0) { $0 + $1.count } == ByteRangeSet(leases).count)
        for plan in script.plans.dropFirst() { script.give(plan) }
        #expect(TickPolicy.isHashedFast(script.machine), "its rate is not known yet")
        script.write(script.plans[0], to: 1 << 20)
        script.feed(.tick)
        #expect(HashableContent(of: script.machine)?.end == 1 << 20)
        for step in 1...20 {
            script.now += .milliseconds(100)
            script.write(script.plans[0], to: (1 << 20) + Int64(step) * 100_000)
            script.feed(.tick)
        }
        #expect(!TickPolicy.isHashedFast(script.machine), "a megabyte a second is hashed between two looks")
        #expect(HashableContent(of: script.machine)?.algorithms == [.sha256])
    }

    @Test("downloads of one host share the connections of a single download, and each has one")
    func shared() throws {
        var script = try alone()
        script.otherConnections = 13
        search(&script, .milliseconds(600), limit: 99)
        #expect(script.plans.filter { script.machine.ledger.lease(of: $0.id) != nil }.count == 3)
        #expect(script.actions.allSatisfy { if case .report(.paysOff, _) = $0 { false } else { true } })
        var crowded = try alone()
        crowded.otherConnections = 999
        search(&crowded, .milliseconds(600), limit: 99)
        #expect(crowded.plans.count == 1)
    }

    @Test("gives the rest of a slow segment to a connection that has finished")
    func steals() throws {
        var script = try spread(2)
        let done = script.plans[1]
        script.now += .seconds(1)
        script.write(script.plans[0], to: 8 << 20)
        script.write(done, to: done.lease.upperBound)
        script.feed(.tick)
        script.now += .seconds(1)
        script.end(done, .complete(.delimited))
        #expect(script.plans.count == 3)
        #expect(script.machine.ledger.lease(of: script.plans[0].id)?.upperBound == script.last.lease.lowerBound)
        #expect(script.last.lease.upperBound <= done.lease.lowerBound)
    }

    @Test("503 for one connection too many lowers the number and affects no other connection")
    func tooManyConnections() throws {
        var script = try TransferScript { $0.options.connections = 4 }
        script.feed(.begin(nil))
        script.answer(
            206,
            [("Content-Range", "bytes 0-\(TransferScript.length - 1)/\(TransferScript.length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.now += .milliseconds(100)
        script.give(script.plans[1])
        script.answer(script.plans[2], 503)
        script.endCancelled()
        script.answer(script.plans[3], 503)
        script.endCancelled()
        #expect(script.actions.contains(.report(.connections(2), of: script.last.url.origin)))
        #expect(script.plans.count == 4)
        #expect(script.ending == nil)
    }

    @Test("a page with 200 in one segment is refused, and no bytes are discarded")
    func pageInSegment() throws {
        var script = try TransferScript { $0.options.connections = 3 }
        script.feed(.begin(nil))
        script.answer(
            206,
            [("Content-Range", "bytes 0-\(TransferScript.length - 1)/\(TransferScript.length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.give(script.plans[1])
        script.answer(script.plans[2], 200, [("Content-Type", "text/html"), ("Content-Length", "99")])
        #expect(script.fresh.contains(.cancel(script.plans[2].id)))
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.prepares.count == 1)
    }

    @Test("a stalled connection is replaced and the others continue")
    func stall() throws {
        var script = try spread(2)
        let stuck = script.plans[1]
        script.write(stuck, to: stuck.lease.lowerBound + 1000)
        script.feed(.tick)
        for second in 1...31 {
            script.now = .seconds(second)
            script.write(script.plans[0], to: Int64(second) << 17)
            script.feed(.tick)
            if script.fresh.contains(.cancel(stuck.id)) { break }
        }
        #expect(script.fresh.contains(.cancel(stuck.id)))
        #expect(script.machine.ledger.lease(of: script.plans[0].id) != nil)
        #expect(script.last.lease == ByteRange(stuck.lease.lowerBound + 1000, stuck.lease.upperBound))
    }

    @Test("a connection that our own rate limit holds back does not stall")
    func heldBack() throws {
        var script = try spread(2)
        for second in 1...200 {
            script.now = .seconds(second)
            for plan in script.plans {
                script.progress[plan.id] = AttemptProgress(position: nil, received: 0, isHeldBack: true)
            }
            script.feed(.tick)
        }
        #expect(script.plans.count == 2)
        #expect(script.actions.allSatisfy { if case .cancel = $0 { false } else { true } })
    }

    @Test("an outage that ends all connections is one failure, and all are retried together")
    func outage() throws {
        var script = try spread(4)
        script.write(script.plans[0], to: 1 << 20)
        for plan in script.plans { script.end(plan, cut()) }
        script.progress = [:]
        script.now = .seconds(20)
        let before = script.plans.count
        for plan in script.plans where script.machine.ledger.lease(of: plan.id) != nil {
            script.end(plan, cut(.connectFailed))
        }
        #expect(script.plans.count == before)
        #expect(script.notices(.retrying).count { $0.message.contains("retrying in") } == 1)
        script.now = .seconds(22)
        script.feed(.tick)
        #expect(script.plans.count == before + 4)
    }

    @Test("races the slowest remainder at the end, and the first to finish ends it")
    func races() throws {
        var script = try spread(2)
        let fast = script.plans[1]
        let slow = script.plans[0]
        let rest: Int64 = 100 << 10
        for second in 1...4 {
            script.now = .seconds(second)
            script.write(fast, to: fast.lease.lowerBound + (fast.lease.count / 4) * Int64(second))
            script.write(slow, to: fast.lease.lowerBound - rest + Int64(second))
            script.feed(.tick)
        }
        // The rate estimate of the slow connection settles over a few quiet seconds.
        for second in 5...12 {
            script.now = .seconds(second)
            script.write(slow, to: fast.lease.lowerBound - rest + Int64(second))
            script.feed(.tick)
        }
        script.end(fast, .complete(.delimited))
        script.feed(.tick)
        let rival = script.last
        #expect(rival.isRace)
        #expect(rival.lease.upperBound == fast.lease.lowerBound)
        script.give(rival)
        script.write(rival, to: rival.lease.upperBound)
        script.end(rival, .complete(.delimited))
        #expect(script.fresh.contains(.cancel(slow.id)))
        script.end(slow, .cancelled)
        #expect(script.fresh.contains(.publish(length: TransferScript.length, modified: nil)))
    }

    @Test("the loser of a race is cancelled, and its bytes are not raced again while others still run")
    func lostRace() throws {
        var script = try spread(3)
        let fast = try #require(script.plans.max { $0.lease.lowerBound < $1.lease.lowerBound })
        let slow = script.plans.filter { $0.id != fast.id }
        let ends = slow.compactMap { script.machine.ledger.lease(of: $0.id)?.upperBound }
        for second in 1...12 {
            script.now = .seconds(second)
            script.write(fast, to: fast.lease.lowerBound + fast.lease.count * Int64(min(second, 4)) / 4)
            for (plan, end) in zip(slow, ends) { script.write(plan, to: end - (100 << 10) + Int64(second)) }
            script.feed(.tick)
        }
        script.end(fast, .complete(.delimited))
        var raced: [ByteRange] = []
        for _ in slow {
            script.feed(.tick)
            let rival = script.last
            #expect(rival.isRace && !raced.contains(rival.lease), "\(rival.lease) of \(ends)")
            raced.append(rival.lease)
            script.give(rival)
            script.write(rival, to: rival.lease.upperBound)
            script.end(rival, .complete(.delimited))
            let loser = try #require(zip(slow, ends).first { $0.1 == rival.lease.upperBound }?.0)
            #expect(script.fresh.contains(.cancel(loser.id)))
            script.end(loser, .cancelled)
        }
        #expect(script.actions.contains(.publish(length: TransferScript.length, modified: nil)))
    }

    @Test("the file is published only after every attempt has ended")
    func waitsForWriters() throws {
        var script = try spread(2)
        script.write(script.plans[0], to: TransferScript.length)
        script.feed(.tick)
        #expect(!script.actions.contains(.publish(length: TransferScript.length, modified: nil)))
        script.endCancelled()
        script.end(script.plans[0], .cancelled)
        script.end(script.plans[1], .cancelled)
        #expect(script.actions.contains(.publish(length: TransferScript.length, modified: nil)))
    }

    @Test("a weak validator allows one connection only: there is no proof that two belong together")
    func weakStaysSingle() throws {
        var script = try TransferScript { $0.options.connections = 8 }
        script.feed(.begin(nil))
        script.answer(
            206,
            [("Content-Range", "bytes 0-\(TransferScript.length - 1)/\(TransferScript.length)"), ("ETag", "W/\"a\"")])
        script.feed(.prepared)
        script.feed(.tick)
        #expect(script.plans.count == 1)
    }

    @Test("a Content-Digest that does not match costs that segment alone")
    func contentDigest() throws {
        var script = try spread(2)
        let wrong = script.plans[1]
        script.write(wrong, to: wrong.lease.upperBound)
        script.end(wrong, .digestDiffers(from: wrong.lease.lowerBound))
        #expect(script.fresh.contains(.withdraw(wrong.lease)))
        #expect(script.last.lease == wrong.lease)
    }

    @Test(
        "a response with its own digest is not cut, unless a checksum of the whole file is known",
        arguments: [nil, "Repr-Digest"])
    func digestsKeepResponsesWhole(_ whole: String?) throws {
        var script = try TransferScript { $0.options.connections = 4 }
        script.feed(.begin(nil))
        let digest = "sha-256=:" + String(repeating: "A", count: 43) + "=:"
        // The digest covers a part; a digest of the whole file would be a checksum of the whole.
        var fields = [
            ("Content-Range", "bytes 0-\(TransferScript.length - 2)/\(TransferScript.length)"), ("ETag", "\"a\""),
        ]
        fields.append(("Content-Digest", digest))
        if let whole { fields.append((whole, digest)) }
        script.answer(206, fields)
        script.feed(.prepared)
        // The last byte is not leased yet.
        #expect(script.plans.count == (whole == nil ? 2 : 4))
    }

    @Test("a checksum that does not match never publishes")
    func checksum() throws {
        let sum = try #require(Checksum(algorithm: .crc32c, value: [1, 2, 3, 4]))
        var script = try TransferScript { $0.options.checksum = sum }
        script.begin(length: 1000, position: 1000)
        script.end(.complete(.delimited))
        #expect(script.fresh.contains(.verify([sum], length: 1000)))
        let found = try #require(Checksum(algorithm: .crc32c, value: [4, 3, 2, 1]))
        script.feed(.verified(mismatches: [ChecksumMismatch(expected: sum, found: found)]))
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.failure?.message.contains("expected crc32c:01020304, got crc32c:04030201") == true)
        #expect(script.actions.contains(.setAside))
        #expect(!script.actions.contains(.publish(length: 1000, modified: nil)))
    }

    @Test("stopping keeps everything and waits for the writers")
    func stops() throws {
        var script = try spread()
        script.feed(.stop)
        #expect(script.ending == nil)
        for plan in script.plans { script.end(plan, .cancelled) }
        #expect(script.ending == .stopped)
    }
}
