import Testing
import TowlineCore

@Suite("A validator that is weaker or malformed in a later response")
struct TransferValidatorTests {
    private func interrupted(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript(change)
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        return script
    }

    private func part(_ tag: String, from lower: Int64 = 383_616) -> [(String, String)] {
        [("Content-Range", "bytes \(lower)-999999/1000000"), ("ETag", tag)]
    }

    @Test("joins after 64 KiB are compared", arguments: ["W/\"a\"", "a", "w/\"a\"", "W/a"])
    func weakened(_ tag: String) throws {
        var script = try interrupted()
        script.answer(206, part(tag))
        script.endCancelled()
        #expect(script.last.field("Range") == "bytes=334464-999999" && script.last.field("If-Range") == nil)
        script.answer(206, part(tag, from: 334_464))
        #expect(script.fresh.allSatisfy { if case .cancel = $0 { false } else { true } })
        #expect(script.notices(.restarted).isEmpty && script.prepares.count == 1)
    }

    @Test("joins also if the server does not match its own weak tag", arguments: ["W/\"a\"", "a"])
    func weakenedInWhole(_ tag: String) throws {
        var script = try interrupted()
        script.answer(200, [("Content-Length", "1000000"), ("ETag", tag)])
        script.endCancelled()
        #expect(script.last.field("If-Range") == nil && script.last.overlap == 16_384)
        script.answer(206, part(tag))
        script.endCancelled()
        #expect(script.last.overlap == 65_536 && script.notices(.restarted).isEmpty)
    }

    @Test("does not join if the tag or the length differs")
    func changed() throws {
        for fields in [part("b"), part("W/\"b\"")] {
            var script = try interrupted()
            script.answer(206, fields)
            script.endCancelled()
            #expect(script.last.isConfirmation && script.last.overlap == 16_384)
        }
        var script = try interrupted()
        script.answer(206, [("Content-Range", "bytes 383616-1000000/1000001"), ("ETag", "W/\"a\"")])
        script.endCancelled()
        script.now += .seconds(2)
        script.feed(.tick)
        #expect(script.last.isConfirmation && script.last.field("Range") == nil)
    }

    @Test("discards held bytes that cannot be compared")
    func held() throws {
        var script = try TransferScript()
        let held = HeldDownload(
            representation: Representation(completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "0x8D81")),
            written: ByteRangeSet([
                ByteRange(0, 500_000), ByteRange(600_000, 630_000), ByteRange(700_000, 1_000_000),
            ]))
        script.feed(.begin(held))
        let believed = ByteRangeSet([ByteRange(0, 500_000), ByteRange(700_000, 999_999)])
        #expect(script.machine.ledger.written == believed)
        #expect(script.last.lease == ByteRange(500_000, 700_000) && script.last.overlap == 65_536)
        script.give(script.last, tag: "0x8D81", length: 1_000_000)
        script.write(to: 700_000)
        script.end(.complete(.delimited))
        #expect(script.last.lease == ByteRange(999_999, 1_000_000) && script.last.overlap == 65_536)
    }
}

@Suite("Nodes of a server that disagree about their validators")
struct TransferNodeTests {
    /// Returns a download with two connections. The second one has not answered yet.
    private func begun(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript { terms in
            terms.options.connections = 2
            change(&terms)
        }
        script.begin(length: TransferScript.length, position: 1 << 20)
        try #require(script.plans.count == 2)
        script.feed(.tick)
        return script
    }

    @Test("leave the running response alone, and get no further connection")
    func single() throws {
        var script = try begun()
        script.give(script.plans[1], tag: "\"b\"")
        script.endCancelled()
        for second in 1...9 {
            script.now = .seconds(second)
            script.write(script.plans[0], to: (1 + Int64(second)) << 20)
            script.feed(.tick)
        }
        #expect(script.plans.count == 2 && script.ending == nil)
        #expect(script.notices(.restarted).isEmpty && script.progress[script.plans[0].id] != nil)
    }

    @Test("do not matter if the user gave a checksum", arguments: ["\"b\"", "\"a\""])
    func checksum(_ next: String) throws {
        var script = try begun { $0.options.checksum = try? Checksum(parsing: TransferScript.sum) }
        script.give(script.plans[1], tag: "\"b\"")
        script.endCancelled()
        #expect(script.plans.count == 3 && script.last.question.rung == .checksum)
        #expect(script.last.field("If-Range") == nil && script.last.overlap == 65_536 || script.last.overlap == 0)
        script.give(script.last, tag: next)
        #expect(script.fresh.allSatisfy { if case .cancel = $0 { false } else { true } })
        #expect(script.notices(.restarted).isEmpty)
    }

    @Test("do not matter either for requests sent before the first answer, if there is a checksum")
    func checksumOfSeveral() throws {
        var script = try TransferScript { terms in
            terms.options.connections = 4
            terms.options.checksum = try? Checksum(parsing: TransferScript.sum)
        }
        script.begin(length: TransferScript.length, position: 1 << 20)
        try #require(script.plans.count == 4)
        script.feed(.tick)
        for (number, plan) in script.plans.dropFirst().enumerated() {
            script.give(plan, tag: "\"b\(number)\"")
            script.endCancelled()
        }
        #expect(script.plans.count == 7 && script.plans.suffix(3).allSatisfy { $0.question.rung == .checksum })
        #expect(script.notices(.restarted).isEmpty && script.ending == nil)
    }

    @Test("do not matter after a break either, if the user gave a checksum", arguments: [200, 206])
    func checksumAfterABreak(_ status: Int) throws {
        var script = try TransferScript { $0.options.checksum = try? Checksum(parsing: TransferScript.sum) }
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        let lengths = [("Content-Length", "1000000"), ("Content-Range", "bytes 383616-999999/1000000")]
        script.answer(status, [lengths[status == 200 ? 0 : 1], ("ETag", "\"b\"")])
        script.endCancelled()
        #expect(!script.last.isConfirmation && script.last.question.rung == .checksum)
        script.give(script.last, tag: "\"c\"", length: 1_000_000)
        #expect(script.machine.ledger.written.count == 400_000 && script.prepares.count == 1)
        // A differing length is a change nevertheless.
        script.write(to: 500_000)
        script.end(cut())
        script.give(script.last, tag: "\"d\"", length: 1_000_001)
        script.endCancelled()
        #expect(script.last.isConfirmation)
    }
}
