import Testing
import TowlineCore

/// Responses over HTTP/2 without proof of their end (RFC 9113 §8.1), and protocol errors of HTTP/2.
@Suite("Ends without proof") struct TransferUnprovenTests {
    private static let tag = [("ETag", "\"a\""), ("Accept-Ranges", "bytes")]

    private func script(
        _ fields: [(String, String)] = [], length: Int64, _ change: (inout TransferTerms) -> Void = { _ in }
    ) throws -> TransferScript {
        var script = try TransferScript(change)
        script.feed(.begin(nil))
        script.answer(200, fields)
        script.feed(.prepared)
        script.write(to: length)
        script.end(.complete(.stream))
        return script
    }

    private func published(_ script: TransferScript) -> Int64? {
        for case .publish(let length, _) in script.actions { return length }
        return nil
    }

    /// Answers the second request with the whole file.
    private func answerAgain(_ script: inout TransferScript, length: Int64, _ framing: AttemptEnd.Framing) {
        script.answer(200)
        script.feed(.prepared)
        script.write(to: length)
        script.end(.complete(framing))
    }

    @Test func anEndWithoutProofIsConfirmedBeforeTheFileIsPublished() throws {
        var script = try script(length: 49_000)
        #expect(published(script) == nil)
        #expect(script.plans.count == 2 && script.last.lease.lowerBound == 0)
        #expect(script.machine.needsOwnConnection)
        answerAgain(&script, length: 600_000, .delimited)
        #expect(published(script) == 600_000)
    }

    @Test func twoEqualLengthsAreEnoughAndTwoDifferentOnesAreNot() throws {
        var script = try script(length: 49_000)
        answerAgain(&script, length: 50_000, .stream)
        #expect(published(script) == nil)
        answerAgain(&script, length: 50_000, .stream)
        #expect(published(script) == 50_000)
        #expect(script.notices(.unverified).count == 1)
    }

    @Test func whereRangesCanBeJoinedOnlyTheEndIsAskedFor() throws {
        var script = try script(Self.tag, length: 49_000)
        #expect(script.last.lease.lowerBound == 49_000)
        script.answer(416, [("Content-Range", "bytes */49000")])
        script.endCancelled()
        #expect(published(script) == 49_000)
        #expect(script.notices(.restarted).isEmpty)
    }

    @Test(arguments: [401, 403, 404, 410]) func aLinkForOneRequestStillGivesItsFile(_ status: Int) throws {
        var script = try script(length: 49_000)
        for _ in 0..<2 { script.refuse(status, .other) }
        #expect(published(script) == 49_000)
        #expect(script.notices(.unverified).count == 1)
    }

    @Test func aServerThatIsDownProvesNothing() throws {
        var script = try script(length: 49_000) { $0.options.maximumTries = 1 }
        for _ in 0..<2 { script.refuse(503, .other) }
        #expect(published(script) == nil)
        #expect(script.failure?.code == .transient)
    }

    @Test func aChecksumDecidesWithoutAnotherRequest() throws {
        var script = try script(length: 49_000) { $0.options.checksum = try? Checksum(parsing: TransferScript.sum) }
        #expect(script.plans.count == 1)
        script.feed(.verified(mismatches: []))
        #expect(published(script) == 49_000)
    }

    @Test func aWrongChecksumAfterAnUnprovenEndIsNotTheServersFault() throws {
        let sum = try Checksum(parsing: TransferScript.sum)
        let other = try Checksum(parsing: "sha256:" + String(repeating: "cd", count: 32))
        var script = try script(length: 49_000) { $0.options.checksum = sum }
        let wrong = [ChecksumMismatch(expected: sum, found: other)]
        script.feed(.verified(mismatches: wrong))
        #expect(script.failure == nil && script.plans.count == 2)
        answerAgain(&script, length: 49_000, .delimited)
        script.feed(.verified(mismatches: wrong))
        #expect(script.failure?.code == .checksumMismatch)
    }

    // MARK: TLS without close_notify

    /// The first answer has no length and ends without close_notify.
    private func unclosed(
        length: Int64, _ change: (inout TransferTerms) -> Void = { _ in }
    ) throws -> TransferScript {
        var script = try TransferScript(change)
        script.feed(.begin(nil))
        script.answer(200)
        script.feed(.prepared)
        script.write(to: length)
        script.end(.complete(.unclosed))
        return script
    }

    @Test(arguments: [AttemptEnd.Framing.unclosed, .closed, .delimited])
    func aSecondAnswerOfTheSameLengthProvesAnEndWithoutCloseNotify(_ framing: AttemptEnd.Framing) throws {
        var script = try unclosed(length: 49_000)
        #expect(published(script) == nil && script.plans.count == 2)
        answerAgain(&script, length: 49_000, framing)
        #expect(published(script) == 49_000)
    }

    @Test func answersThatAlwaysEndElsewhereAreNoFile() throws {
        var script = try unclosed(length: 49_000)
        for length in stride(from: Int64(50_000), to: 90_000, by: 1000) where script.ending == nil {
            answerAgain(&script, length: length, .unclosed)
        }
        let failure = script.failure
        #expect(published(script) == nil)
        #expect(failure?.code == .lengthUnproven && script.plans.count <= 8)
        #expect(failure?.message.contains(Remedy.checksum.rawValue) == true)
    }

    @Test func aChecksumProvesAnEndWithoutCloseNotify() throws {
        let script = try unclosed(length: 49_000) { $0.options.checksum = try? Checksum(parsing: TransferScript.sum) }
        #expect(script.plans.count == 1 && script.actions.contains { if case .verify = $0 { true } else { false } })
    }

    @Test func onStandardOutputOnlyAChecksumProvesIt() throws {
        let script = try unclosed(length: 49_000) { $0.isStream = true }
        #expect(script.failure?.code == .lengthUnproven)
        let verified = try unclosed(length: 49_000) {
            $0.isStream = true
            $0.options.checksum = try? Checksum(parsing: TransferScript.sum)
        }
        #expect(verified.failure == nil)
    }

    @Test func anotherProtocolIsTriedAtOnceAndOneNoticeSaysSo() throws {
        var script = try TransferScript { $0.options.maximumTries = 1 }
        script.feed(.begin(nil))
        script.end(.failed(TransportFailure(.http2Failed, "the stream was reset")))
        #expect(script.plans.count == 2 && script.failure == nil)
        let expected = "the stream was reset. Using HTTP/1.1 for this host from now on"
        #expect(script.notices(.retrying).map(\.message) == [expected])
    }
}
