import Testing

@testable import TowlineCore

/// Tests by value what becomes of the part file that a new version of the file replaces.
@Suite("The part file of the earlier version")
struct TransferEarlierPartTests {
    private static let tagged = [("Content-Length", "4000000"), ("ETag", "\"a\"")]
    private static let changed = [("Content-Length", "4000000"), ("ETag", "\"b\"")]
    private static let held = HeldDownload(
        representation: Representation(completeLength: 4_000_000, entityTag: EntityTag(fieldValue: "\"a\"")),
        written: ByteRangeSet([ByteRange(0, 400_000)]))

    /// Delivers the first `count` bytes of the present version.
    private func deliver(_ count: Int64, _ script: inout TransferScript) {
        script.progress[script.last.id] = AttemptProgress(position: count, received: count)
    }

    /// Shows another version, and confirms it.
    private func replace(_ script: inout TransferScript, with answer: [(String, String)]) {
        script.answer(200, answer)
        script.endCancelled()
        script.answer(200, answer)
    }

    /// Returns a download that holds 400,000 bytes of version a, and has begun version b.
    private func changed(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript(change)
        script.feed(.begin(Self.held))
        replace(&script, with: Self.changed)
        script.machine.earlier = HeldVersion(Self.held.representation, count: 400_000)
        script.feed(.prepared)
        return script
    }

    /// Lets the response break after `count` bytes of version b, and the next request get version a.
    private func returned(to answer: [(String, String)], after count: Int64) throws -> TransferScript {
        var script = try changed()
        deliver(count, &script)
        script.end(cut())
        script.now += .seconds(5)
        script.feed(.tick)
        if answer.map(\.1) == Self.tagged.map(\.1) {
            script.answer(200, answer)
        } else {
            replace(&script, with: answer)
        }
        script.endCancelled()
        return script
    }

    @Test("stays until the new one has as many bytes that are saved to disk") func removed() throws {
        var script = try changed()
        #expect(script.prepares.last?.keepsReplaced == true)
        deliver(600_000, &script)
        script.feed(.tick)
        #expect(!script.actions.contains(.removeEarlier))
        script.feed(.checkpointed(ByteRangeSet([ByteRange(0, 399_999)])))
        #expect(!script.actions.contains(.removeEarlier))
        script.feed(.checkpointed(ByteRangeSet([ByteRange(0, 400_000)])))
        script.feed(.tick)
        #expect(script.actions.count { $0 == .removeEarlier } == 1)
    }

    @Test("is removed before a smaller file is published") func published() throws {
        var script = try TransferScript()
        script.feed(.begin(Self.held))
        replace(&script, with: [("Content-Length", "300000"), ("ETag", "\"b\"")])
        script.machine.earlier = HeldVersion(Self.held.representation, count: 400_000)
        script.feed(.prepared)
        deliver(300_000, &script)
        script.end(.complete(.delimited))
        #expect(script.fresh.first == .removeEarlier)
        #expect(script.fresh.contains { if case .publish = $0 { true } else { false } })
    }

    @Test("is resumed if the server returns to its version, over one connection") func resumed() throws {
        var script = try returned(to: Self.tagged, after: 100_000)
        #expect(
            script.fresh.contains(.resumeEarlier(isOpen: false)) || script.actions.last == .resumeEarlier(isOpen: false)
        )
        script.feed(.begin(Self.held))
        #expect(script.machine.ledger.written.count == 400_000)
        script.now += .seconds(60)
        script.feed(.tick)
        #expect(script.last.field("If-Range") == "\"a\"" && script.last.lease.lowerBound == 400_000)
        #expect(!script.machine.mayShare)
    }

    @Test("is not resumed a second time before new bytes are joined: the response is fetched whole") func again() throws
    {
        var script = try returned(to: Self.tagged, after: 100_000)
        script.feed(.begin(Self.held))
        script.now += .seconds(60)
        script.feed(.tick)
        replace(&script, with: Self.changed)
        script.machine.earlier = HeldVersion(Self.held.representation, count: 400_000)
        script.feed(.prepared)
        deliver(50_000, &script)
        script.end(cut())
        script.now += .seconds(60)
        script.feed(.tick)
        let count = script.actions.count { $0 == .resumeEarlier(isOpen: false) }
        replace(&script, with: Self.tagged)
        #expect(count == 1 && script.actions.count { $0 == .resumeEarlier(isOpen: false) } == 1)
        #expect(script.prepares.last?.representation.entityTag?.fieldValue == "\"a\"")
    }

    @Test(
        "is not resumed if only its length or a weak validator returns",
        arguments: [
            [("Content-Length", "3999999"), ("ETag", "\"a\"")], [("Content-Length", "4000000"), ("ETag", "W/\"a\"")],
            [("Content-Length", "4000000"), ("ETag", "\"c\"")],
        ])
    func notResumed(_ answer: [(String, String)]) throws {
        let script = try returned(to: answer, after: 100_000)
        #expect(!script.actions.contains(.resumeEarlier(isOpen: false)))
        // The one with more bytes stays.
        #expect(script.prepares.last?.keepsReplaced == false)
    }

    /// Files up to 1 MiB have no journal.
    @Test("is not resumed if the file is small", arguments: [1_000_000, 2_000_000] as [Int64]) func small(
        _ length: Int64
    ) {
        let representation = Representation(completeLength: length, entityTag: EntityTag(fieldValue: "\"a\""))
        let head = ResponseHead(
            status: 200, fields: HTTPFields([("Content-Length", String(length)), ("ETag", "\"a\"")]))
        let part = HeldPart(earlier: HeldVersion(representation, count: 1000))
        #expect(part.returns(to: ResponseFacts(head, nameOfURL: "f"), from: nil) == (length > 1 << 20 ? false : nil))
    }

    @Test("stays only if its bytes can be resumed, and an earlier one has fewer") func kept() {
        var part = HeldPart(exists: true, isReplaced: true, replacement: .kept)
        part.replaced = HeldVersion(Self.held.representation, count: 10)
        #expect(part.keepsReplaced)
        part.replaced?.coding = "gzip"
        #expect(!part.keepsReplaced)
        part.replaced?.coding = nil
        part.earlier = HeldVersion(Self.held.representation, count: 10)
        #expect(!part.keepsReplaced)
    }

    @Test("is not resumed if the present one has the same version") func returns() {
        let facts = ResponseFacts(ResponseHead(status: 200, fields: HTTPFields(Self.tagged)), nameOfURL: "f")
        let part = HeldPart(exists: true, earlier: HeldVersion(Self.held.representation, count: 10))
        #expect(part.returns(to: facts, from: nil) == false)
        #expect(part.returns(to: facts, from: Self.held.representation) == nil)
    }

    @Test("of the version that has more bytes stays, if the file changes once more") func larger() throws {
        var script = try changed()
        deliver(500_000, &script)
        script.end(cut())
        script.now += .seconds(5)
        script.feed(.tick)
        replace(&script, with: [("Content-Length", "4000000"), ("ETag", "\"c\"")])
        #expect(script.prepares.count == 2 && script.prepares.last?.keepsReplaced == true)
    }

    /// A response to a range request shows the change, so the file is requested again; this time it is the old one.
    @Test("is resumed before it was replaced, if the next response has its version") func stillOpen() throws {
        var script = try TransferScript()
        script.feed(.begin(Self.held))
        for _ in 0..<2 {
            script.answer(206, [("Content-Range", "bytes 383616-3999999/4000000"), ("ETag", "\"b\"")])
            script.endCancelled()
        }
        script.now += .seconds(60)
        script.feed(.tick)
        #expect(script.last.lease == ByteRange(0, .max))
        script.answer(200, Self.tagged)
        script.endCancelled()
        #expect(script.actions.last == .resumeEarlier(isOpen: true) && script.prepares.isEmpty)
        script.feed(.begin(Self.held))
        #expect(script.machine.ledger.written.count == 400_000)
    }

    @Test("is removed with a notice if the disk is full, and the download continues") func fullDisk() throws {
        var script = try changed()
        deliver(200_000, &script)
        let error = TowlineError(.diskFull, "the disk is full")
        script.end(.sinkFailed(error))
        #expect(script.actions.contains(.removeEarlier) && script.ending == nil)
        #expect(script.notices(.disk).first?.message.contains("no space for two versions") == true)
        script.now += .seconds(60)
        script.feed(.tick)
        #expect(script.last.lease.lowerBound == 200_000)
        script.end(.sinkFailed(error))
        #expect(script.failure?.code == .diskFull)
    }

    @Test("is removed with a notice if the disk is full at a checkpoint") func fullDiskAtCheckpoint() throws {
        var script = try changed()
        deliver(200_000, &script)
        let error = TowlineError(.diskFull, "the disk is full")
        script.feed(.checkpointFailed(ByteRangeSet([ByteRange(0, 100_000)]), error))
        #expect(script.actions.contains(.removeEarlier) && script.ending == nil)
        script.endCancelled()
        script.now += .seconds(60)
        script.feed(.tick)
        #expect(script.last.lease.lowerBound == 100_000)
        // The failure that made room does not count.
        for isLast in [false, true] {
            script.feed(.checkpointFailed(ByteRangeSet(), error))
            script.endCancelled()
            #expect((script.failure?.code == .diskFull) == isLast)
            script.now += .seconds(60)
            if !isLast { script.feed(.tick) }
        }
    }

    @Test("is kept without proof, and not if its bytes are wrong or lost", arguments: [true, false])
    func withoutProof(_ isWrong: Bool) throws {
        var script = try TransferScript()
        script.begin(length: 4_000_000, position: 400_000, tag: isWrong ? "\"a\"" : nil)
        if isWrong {
            script.feed(.partDamaged(reason: "another program changed the part file"))
            script.endCancelled()
        } else {
            script.end(cut())
        }
        script.now += .seconds(60)
        script.feed(.tick)
        script.answer(200, [("Content-Length", "4000000")] + (isWrong ? [("ETag", "\"a\"")] : []))
        #expect(script.prepares.count == 2 && script.prepares.last?.keepsReplaced == !isWrong)
        #expect(!script.actions.contains(.resumeEarlier(isOpen: true)))
    }
}
