import Testing
import TowlineCore

/// Compares the claims of answers, journals and copies with known facts: a claim without proof is not believed, and one
/// bad answer does not discard bytes.
@Suite struct TransferClaimTests {
    @Test func aWeakTagSaysNothingOfTheLength() throws {
        var script = try TransferScript {
            $0.options.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32))
        }
        script.begin(length: 1_000_000, position: 400_000, tag: "W/\"a\"")
        script.end(cut())
        script.answer(200, [("ETag", "W/\"a\"")])
        script.endCancelled()
        script.answer(200, [("ETag", "W/\"a\"")])
        script.endCancelled()
        script.feed(.prepared)
        let keeper = try #require(script.plans.last)
        #expect(script.machine.ledger.lease(of: keeper.id) == ByteRange(0, .max), "the new body may be longer")
    }

    @Test(arguments: [900_000, 1_000_000, 1_100_000] as [Int64])
    func aClosedConnectionDoesNotShortenWhatAWeakTagNames(_ length: Int64) throws {
        var script = try TransferScript {
            $0.options.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32))
        }
        script.begin(length: 1_000_000, position: 400_000, tag: "W/\"a\"")
        script.end(cut())
        for _ in 0..<3 where script.prepares.count < 2 {
            script.answer(200, [("ETag", "W/\"a\"")])
            script.endCancelled()
        }
        script.feed(.prepared)
        script.write(to: length)
        script.end(.complete(.closed))
        let isVerified = script.actions.contains { if case .verify(_, length) = $0 { true } else { false } }
        #expect(isVerified == (length >= 1_000_000))
    }

    @Test func aCopyIsComparedThoughItClaimsToBeWhole() throws {
        var script = try TransferScript()
        let representation = Representation(
            completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "\"a\""))
        script.feed(
            .begin(
                HeldDownload(
                    representation: representation, written: ByteRangeSet([ByteRange(0, 1_000_000)]), isDoubtful: true))
        )
        #expect(script.plans.first?.overlap == 65_536)
        #expect(script.plans.first?.lease == ByteRange(999_999, 1_000_000))
        script.answer(206, [("Content-Range", "bytes 934463-999999/1000000"), ("ETag", "\"a\"")])
        script.end(.overlapDiffers)
        #expect(script.notices(.restarted).count == 1)
        #expect(!script.actions.contains { if case .publish = $0 { true } else { false } })
    }

    /// A part file that its journal does not describe may have any origin: no byte is used without the user's checksum.
    @Test(arguments: [(false, false), (true, false), (false, true)])
    func aForeignPartFileIsNotBelieved(hasChecksum: Bool, isUnsafe: Bool) throws {
        let sum = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32)))
        var script = try TransferScript {
            if hasChecksum { $0.options.checksum = sum }
            $0.options.allowsUnsafeResume = isUnsafe
        }
        // The journal's own checksum has the same origin as the bytes.
        let forged = try #require(Checksum(algorithm: .md5, value: Array(repeating: 2, count: 16)))
        let all = ByteRangeSet([ByteRange(0, 1_000_000)])
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(
                        completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "\"a\"")),
                    written: all, durable: all, isDoubtful: true, isUntrusted: true, checksums: [forged])))
        let isVerified = script.actions.contains { if case .verify = $0 { true } else { false } }
        #expect(isVerified == hasChecksum)
        #expect(script.notices(.restarted).count == (hasChecksum || isUnsafe ? 0 : 1))
        guard !hasChecksum else { return }
        #expect(script.plans.first?.lease.lowerBound == (isUnsafe ? 999_999 : 0))
        guard !isUnsafe else { return }
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"a\"")])
        let replaces = script.actions.contains { if case .prepare(let plan) = $0 { plan.isReplacement } else { false } }
        #expect(replaces, "the first response replaces the part file: \(script.actions)")
    }

    /// An attacker can choose bytes that match any CRC-32C.
    @Test func aForgeableChecksumProvesNothing() throws {
        let sum = try #require(Checksum(algorithm: .crc32c, value: [1, 2, 3, 4]))
        var script = try TransferScript { $0.options.checksum = sum }
        let all = ByteRangeSet([ByteRange(0, 1_000_000)])
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(completeLength: 1_000_000), written: all, durable: all,
                    isUntrusted: true)))
        #expect(script.plans.first?.lease.lowerBound == 0)
    }

    /// A journal that says that the file is empty is confirmed by a request.
    @Test func anEmptyFileIsConfirmed() throws {
        var script = try TransferScript()
        script.feed(.begin(HeldDownload(representation: Representation(completeLength: 0), written: ByteRangeSet())))
        #expect(script.plans.count == 1)
        let isPublished = script.actions.contains { if case .publish = $0 { true } else { false } }
        #expect(!isPublished)
    }

    /// Bytes that the journal calls durable must still be compared; a failed sync does not make them valid.
    @Test func aCopyIsComparedAfterAFailedSyncToo() throws {
        var script = try TransferScript()
        let all = ByteRangeSet([ByteRange(0, 500_000)])
        let representation = Representation(
            completeLength: 1_000_000, entityTag: EntityTag(fieldValue: "\"a\""))
        script.feed(
            .begin(HeldDownload(representation: representation, written: all, durable: all, isDoubtful: true)))
        let first = script.last
        script.feed(.checkpointFailed(all, TowlineError(.diskFailure, "/d/f: EIO")))
        script.end(first, .cancelled)
        #expect(script.plans.count == 2)
        #expect(script.last.lease.lowerBound == 499_999)
        #expect(script.last.overlap == 65_536)
    }

    @Test func aCopyWithAChecksumIsVerifiedAsItIs() throws {
        let sum = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32)))
        var script = try TransferScript { $0.options.checksum = sum }
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(completeLength: 1_000_000),
                    written: ByteRangeSet([ByteRange(0, 1_000_000)]), isDoubtful: true)))
        #expect(
            script.actions == [
                .notice(TransferNotice(.info, .resumed, "resuming: 976.6 KiB already downloaded")),
                .verify([sum], length: 1_000_000),
            ])
    }

    /// The file changes between the first answer and the first byte: facts about the first file do not apply to the
    /// second.
    @Test func readersAreToldOfAnotherFileThoughNoByteCame() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        let told = TransferContent(of: script.machine).generation
        script.end(cut())
        script.now = .seconds(5)
        script.feed(.tick)
        script.answer(206, [("Content-Range", "bytes 0-1999999/2000000"), ("ETag", "\"b\"")])
        script.feed(.prepared)
        #expect(TransferContent(of: script.machine).generation != told)
    }

    @Test func theSameFileAskedForAgainEndsNoReader() throws {
        var script = try TransferScript()
        let fields = [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"a\"")]
        script.feed(.begin(nil))
        script.answer(206, fields)
        script.feed(.prepared)
        let told = TransferContent(of: script.machine).generation
        script.end(cut())
        script.now = .seconds(5)
        script.feed(.tick)
        script.answer(206, fields)
        script.feed(.prepared)
        #expect(TransferContent(of: script.machine).generation == told)
    }

    @Test func aDigestOfWhatIsGivenUpJudgesNothingElse() throws {
        let old = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32)))
        var script = try TransferScript()
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(completeLength: 1000, entityTag: EntityTag(fieldValue: "\"a\"")),
                    written: ByteRangeSet(), checksums: [old])))
        let digest = "sha-256=:" + String(repeating: "A", count: 43) + "=:"
        script.answer(
            206, [("Content-Range", "bytes 0-999/1000"), ("ETag", "\"b\""), ("Repr-Digest", digest)])
        #expect(script.prepares.last?.checksums.count == 1)
        #expect(script.prepares.last?.checksums.contains(old) == false)
    }

    @Test func theUsersChecksumReplacesTheOneOfTheRunBefore() throws {
        let right = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32)))
        let typo = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 2, count: 32)))
        var script = try TransferScript { $0.options.checksum = right }
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(completeLength: 1000, entityTag: EntityTag(fieldValue: "\"a\"")),
                    written: ByteRangeSet([ByteRange(0, 1000)]), checksums: [typo])))
        #expect(script.actions.contains(.verify([right], length: 1000)))
    }

    /// An empty part of unknown length is a failure, and does not lead to the next part.
    @Test func emptyPartsOfUnknownLengthUseUpTheTries() throws {
        var script = try TransferScript { $0.options.maximumTries = 3 }
        script.feed(.begin(nil))
        for _ in 0..<50 where script.ending == nil {
            script.answer(206, [("Content-Range", "bytes 0-999/*"), ("ETag", "\"a\"")])
            script.feed(.prepared)
            script.end(.complete(.delimited))
            script.now += .seconds(100)
            script.feed(.tick)
        }
        #expect(script.failure?.code == .transient)
        #expect(script.plans.count == 3)
    }

    @Test func oneThatBringsBytesIsNotGivenUpForOthersThatAreRefused() throws {
        var script = try TransferScript { $0.options.connections = 2 }
        script.begin(length: 64 << 20, position: 1 << 20)
        let healthy = script.plans[0]
        script.feed(.tick)
        for round in 1...8 {
            if script.last.id != healthy.id, script.progress[script.last.id] != nil {
                script.answer(204)
                script.endCancelled()
            }
            script.now += .seconds(21)
            script.write(healthy, to: Int64(round + 1) << 20)
            script.feed(.tick)
        }
        #expect(script.plans.count > 2, "others were tried")
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.machine.ledger.lease(of: healthy.id) != nil)
    }

    @Test func anEndThatIsAnotherFilesIsNone() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(206, [("Content-Range", "bytes 0-999/*"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 1000)
        script.end(.complete(.delimited))
        script.answer(416, [("Content-Range", "bytes */1000"), ("ETag", "\"b\"")])
        script.endCancelled()
        #expect(!script.actions.contains { if case .publish = $0 { true } else { false } })
    }

    /// Bytes that a pipe has accepted cannot be written again: no attempt follows until their number is known.
    @Test func aStreamGoesOnWhereTheLastOneEnded() throws {
        var script = try TransferScript { $0.isStream = true }
        script.begin(length: 1_000_000, position: 400_000)
        let first = script.last
        script.feed(.tick)
        script.now = .seconds(31)
        script.feed(.tick)
        #expect(script.fresh.contains(.cancel(first.id)))
        #expect(script.plans.count == 1)
        script.write(first, to: 416_384)
        script.end(first, .cancelled)
        #expect(script.plans.count == 2)
        #expect(script.last.lease.lowerBound == 416_384)
    }
}
