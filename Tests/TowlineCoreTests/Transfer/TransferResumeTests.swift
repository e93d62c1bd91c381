import Testing
import TowlineCore

@Suite("A transfer that is interrupted")
struct TransferResumeTests {
    @Test("asks for everything first, learns, prepares, and publishes the received bytes")
    func wholeWay() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        #expect(script.last.field("Range") == "bytes=0-")
        #expect(script.last.field("Accept-Encoding") == "identity")
        #expect(script.last.field("If-Range") == nil)
        script.answer(206, [("Content-Range", "bytes 0-999/1000"), ("ETag", "\"a\"")])
        #expect(script.prepares.count == 1)
        #expect(script.prepares.first?.isReplacement == false)
        #expect(script.feed(.prepared).contains(.proceed(script.last.id)))
        script.write(to: 1000)
        let actions = script.end(.complete(.delimited))
        #expect(actions.contains(.publish(length: 1000, modified: nil)))
        script.feed(.published)
        #expect(script.ending == .finished)
    }

    @Test("resumes where it stopped, with If-Range and 16 KiB of overlap")
    func resumesWithProof() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        #expect(script.plans.count == 2)
        #expect(script.last.field("Range") == "bytes=\(400_000 - 16_384)-999999")
        #expect(script.last.field("If-Range") == "\"a\"")
        #expect(script.last.overlap == 16_384)
        #expect(script.last.lease == ByteRange(400_000, 1_000_000))
        #expect(script.last.joinsDirectly)
    }

    @Test("resumes from the journal of an earlier process without requesting held bytes")
    func resumesFromJournal() throws {
        var script = try TransferScript()
        let held = HeldDownload(
            representation: Representation(completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "\"a\"")),
            written: ByteRangeSet([ByteRange(0, 500_000), ByteRange(600_000, 1_000_000)]))
        script.feed(.begin(held))
        #expect(script.last.lease == ByteRange(500_000, 600_000))
        #expect(script.last.field("Range") == "bytes=\(500_000 - 16_384)-599999")
    }

    @Test("says that it resumes when a new byte is joined, and not before", arguments: [true, false])
    func announcement(_ isSame: Bool) throws {
        var script = try TransferScript()
        let held = HeldDownload(
            representation: Representation(completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "\"a\"")),
            written: ByteRangeSet([ByteRange(0, 500_000)]))
        script.feed(.begin(held))
        #expect(script.notices(.resumed).isEmpty)
        guard isSame else {
            // The change is confirmed by a second response.
            for _ in 0..<2 {
                script.answer(200, [("ETag", "\"b\""), ("Content-Length", "1000000")])
                script.endCancelled()
            }
            script.feed(.prepared)
            script.write(to: 1_000)
            script.feed(.tick)
            #expect(script.notices(.restarted).count == 1 && script.notices(.resumed).isEmpty)
            return
        }
        script.give(script.last, length: 1_000_000)
        script.feed(.tick)
        #expect(script.notices(.resumed).isEmpty)
        script.write(to: 600_000)
        script.feed(.tick)
        script.write(to: 700_000)
        script.feed(.tick)
        #expect(script.notices(.resumed).map(\.message) == ["resuming: 488.3 KiB already downloaded"])
    }

    @Test("sends no request when all bytes are held")
    func nothingMissing() throws {
        var script = try TransferScript()
        let held = HeldDownload(
            representation: Representation(completeLength: 1000, entityTag: EntityTag(fieldValue: "\"a\"")),
            written: ByteRangeSet([ByteRange(0, 1000)]))
        script.feed(.begin(held))
        #expect(script.plans.isEmpty)
        #expect(script.fresh.contains(.publish(length: 1000, modified: nil)))
    }

    @Test("starts over if there is no proof that it is the same file")
    func noValidator() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000, tag: nil)
        script.end(cut())
        #expect(script.plans.count == 1)
        script.now = .seconds(1)
        script.feed(.tick)
        #expect(script.last.field("Range") == "bytes=0-")
        #expect(script.notices(.restarted).count == 1)
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000")])
        #expect(script.prepares.last?.isReplacement == true)
    }

    @Test("names --ignore-length if responses without ranges end at the same byte", arguments: [400_000, 500_000])
    func wrongLength(_ second: Int64) throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000, tag: nil)
        script.end(cut())
        #expect(!script.notices(.retrying).contains { $0.message.contains(Remedy.wrongLength.rawValue) })
        script.now = .seconds(1)
        script.feed(.tick)
        script.answer(200, [("Content-Length", "1000000")])
        script.feed(.prepared)
        script.write(to: second)
        script.end(cut())
        #expect(
            script.notices(.retrying).contains { $0.message.contains(Remedy.wrongLength.rawValue) }
                == (second == 400_000))
    }

    @Test("resumes without a validator when the user takes the risk, or a checksum follows")
    func unsafeOrChecksum() throws {
        let sum = try #require(Checksum(algorithm: .crc32c, value: [1, 2, 3, 4]))
        for change: (inout TransferTerms) -> Void in [
            { $0.options.allowsUnsafeResume = true }, { $0.options.checksum = sum },
        ] {
            var script = try TransferScript(change)
            script.begin(length: 1_000_000, position: 400_000, tag: nil)
            script.end(cut())
            #expect(script.last.lease.lowerBound == 400_000)
            #expect(script.last.field("If-Range") == nil)
            #expect(script.last.overlap == 65_536)
        }
    }

    @Test("resumes with a weak tag only after comparing 64 KiB")
    func weakTag() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000, tag: "W/\"a\"")
        script.end(cut())
        #expect(script.last.field("Range") == "bytes=\(400_000 - 65_536)-999999")
        #expect(script.last.field("If-Range") == nil)
        script.answer(206, [("Content-Range", "bytes 334464-999999/1000000"), ("ETag", "W/\"a\"")])
        #expect(script.fresh.allSatisfy { if case .cancel = $0 { false } else { true } })
    }

    @Test("falls back to a plain range if the server rejects If-Range, then does without ranges")
    func ladder() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        let whole = [("Content-Length", "1000000"), ("ETag", "\"a\"")]
        script.answer(200, whole)
        script.endCancelled()
        #expect(script.last.field("If-Range") == nil)
        #expect(script.last.field("Range") == "bytes=\(400_000 - 16_384)-999999")
        script.answer(200, whole)
        // The answer contains the complete file again: its body becomes the new part file.
        #expect(script.prepares.last?.isReplacement == true)
        #expect(script.notices(.restarted).count == 1)
        script.feed(.prepared)
        #expect(script.fresh.contains(.proceed(script.last.id)))
        script.write(to: 1_000_000)
        script.end(.complete(.delimited))
        #expect(script.fresh.contains(.publish(length: 1_000_000, modified: nil)))
    }

    @Test("starts over when the bytes before the seam differ, and never uses them again")
    func seamDiffers() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        script.answer(206, [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\"")])
        script.end(.overlapDiffers)
        #expect(script.last.lease == ByteRange(0, .max))
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"a\"")])
        #expect(script.prepares.last?.isReplacement == true)
    }

    @Test("a body that ends before its known length is a failure")
    func shortBody() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, [("Content-Length", "1000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 600)
        script.end(.complete(.closed))
        #expect(script.ending == nil)
        #expect(!script.actions.contains(.publish(length: 1000, modified: nil)))
        #expect(script.last.field("Range") == "bytes=0-999")
    }

    @Test("a body of unknown length ends with the connection, and a notice says so")
    func unknownLength() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, [])
        script.feed(.prepared)
        script.write(to: 777)
        script.end(.complete(.closed))
        #expect(script.fresh.contains(.publish(length: 777, modified: nil)))
        #expect(script.notices(.unverified).count == 1)
    }

    @Test("a length known once also applies if a later answer for the same file does not state it")
    func lengthKnownOnce() throws {
        for framing in [AttemptEnd.Framing.closed, .stream, .delimited] {
            var script = try TransferScript()
            let known = Representation(completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "\"a\""))
            let written = ByteRangeSet([ByteRange(0, 500_000)])
            script.feed(.begin(HeldDownload(representation: known, written: written)))
            // The server gives no range with If-Range, nor without it.
            script.answer(200, [("ETag", "\"a\"")])
            script.endCancelled()
            script.answer(200, [("ETag", "\"a\"")])
            script.endCancelled()
            script.feed(.prepared)
            script.write(to: 300_000)
            script.end(.complete(framing))
            let published = script.actions.contains { if case .publish = $0 { true } else { false } }
            #expect(!published)
            #expect(script.prepares.last?.representation.completeLength == 1_000_000)
        }
    }

    @Test("a complete length of * is found by requesting the bytes after the end")
    func unknownTotal() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(206, [("Content-Range", "bytes 0-999/*"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 1000)
        script.end(.complete(.delimited))
        #expect(script.last.field("Range") == "bytes=1000-")
        script.answer(416, [("Content-Range", "bytes */1000"), ("ETag", "\"a\"")])
        script.endCancelled()
        #expect(script.actions.contains(.publish(length: 1000, modified: nil)))
    }

    @Test("a part file that is being published is not lost, and a checkpoint that ends too late has not failed")
    func publishingGoesOn() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 1_000_000)
        script.end(.complete(.delimited))
        #expect(script.fresh.contains(.publish(length: 1_000_000, modified: nil)))
        #expect(script.feed(.partLost(reason: "it was moved")).isEmpty)
        let closed = TowlineError(.diskFailure, "the journal is closed")
        #expect(script.feed(.checkpointFailed(ByteRangeSet(), closed)).isEmpty)
        script.feed(.published)
        #expect(script.ending == .finished)
        #expect(script.notices(.restarted).isEmpty)
    }

    @Test("a part file that is damaged when it is published is fetched again")
    func damagedWhilePublishing() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 1_000_000)
        script.end(.complete(.delimited))
        #expect(script.machine.phase == .publishing)
        let requests = script.plans.count
        script.feed(.partDamaged(reason: "it was truncated"))
        #expect(script.plans.count == requests + 1 && script.last.lease.lowerBound == 0)
        #expect(script.notices(.restarted).count == 1)
        #expect(script.machine.ledger.written.isEmpty)
    }

    @Test("after a failed sync only durable bytes count, and the others are fetched again")
    func failedSync() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        let error = TowlineError(.diskFailure, "syncing failed")
        script.feed(.checkpointFailed(ByteRangeSet([ByteRange(0, 100_000)]), error))
        script.write(to: 450_000)
        script.endCancelled()
        #expect(script.last.lease == ByteRange(100_000, 1_000_000))
        script.feed(.checkpointFailed(ByteRangeSet([ByteRange(0, 100_000)]), error))
        script.endCancelled()
        #expect(script.failure?.code == .diskFailure)
    }
}
