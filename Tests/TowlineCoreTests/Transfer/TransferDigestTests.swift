import Testing
import TowlineCore

/// A digest of one response (RFC 9530 §2) is known to match when the response has ended, and not when its last byte is
/// written. Bytes that look complete before the end of the response are not published.
@Suite("Digests of one response")
struct TransferDigestTests {
    private static let length: Int64 = 3_000_000
    private static let held: Int64 = 1_000_000
    private static let digest = ("Content-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:")
    private static let wrong = Checksum(algorithm: .sha256, value: Array(repeating: 0, count: 32))

    /// Returns a transfer with all bytes written. The last part has a digest of its response, and the response has not
    /// ended.
    private func whole(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript(change)
        let representation = Representation(completeLength: Self.length, entityTag: EntityTag(fieldValue: "\"a\""))
        let held = ByteRangeSet([ByteRange(0, Self.held)])
        script.feed(.begin(HeldDownload(representation: representation, written: held)))
        answerRest(&script)
        script.write(to: Self.length)
        return script
    }

    private func answerRest(_ script: inout TransferScript) {
        let first = script.last.seam.lowerBound
        script.answer(
            206,
            [("Content-Range", "bytes \(first)-\(Self.length - 1)/\(Self.length)"), ("ETag", "\"a\""), Self.digest])
    }

    /// Returns a transfer with a complete file from one response with these fields.
    private func single(
        status: Int = 206, _ fields: [(String, String)], _ change: (inout TransferTerms) -> Void = { _ in }
    ) throws -> TransferScript {
        var script = try TransferScript(change)
        script.feed(.begin(nil))
        finishSingle(&script, status, fields)
        return script
    }

    private func finishSingle(_ script: inout TransferScript, _ status: Int, _ fields: [(String, String)]) {
        let range = ("Content-Range", "bytes 0-\(Self.length - 1)/\(Self.length)")
        script.answer(status, (status == 206 ? [range] : []) + [("Content-Length", "\(Self.length)")] + fields)
        script.feed(.prepared)
        script.write(to: Self.length)
    }

    private func isPublished(_ script: TransferScript) -> Bool {
        script.actions.contains { if case .publish = $0 { true } else { false } }
    }

    @Test("a checkpoint does not publish the file before its response has ended")
    func lookBeforeTheEnd() throws {
        var script = try whole()
        let first = script.last
        script.now = .milliseconds(100)
        script.feed(.tick)
        let others = script.fresh.filter { if case .notice(let notice) = $0 { notice.kind != .resumed } else { true } }
        #expect(others.isEmpty)
        script.end(first, .digestDiffers(from: Self.held))
        #expect(!isPublished(script))
        #expect(script.plans.count == 2 && script.last.lease.lowerBound == Self.held)
    }

    @Test("a matching digest at the end publishes the file")
    func matches() throws {
        var script = try whole()
        script.feed(.tick)
        script.end(.complete(.delimited))
        #expect(isPublished(script))
    }

    @Test("a response that never ends is cancelled, and its written bytes are accepted")
    func neverEnds() throws {
        var script = try whole()
        for second in 1...40 {
            script.now = .seconds(second)
            script.feed(.tick)
            script.endCancelled()
        }
        #expect(isPublished(script))
    }

    @Test("with a checksum, a response whose digest is wrong is fetched again although all other attempts have ended")
    func whileDraining() throws {
        var script = try whole {
            $0.options.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 0, count: 32))
        }
        let first = script.last
        script.feed(.tick)
        script.end(first, .digestDiffers(from: Self.held))
        #expect(!script.actions.contains { if case .verify = $0 { true } else { false } })
        #expect(script.plans.count == 2)
    }

    // MARK: Wrong fields

    @Test("a second mismatch of the same part ends the download, and its bytes are not kept as right")
    func partTwice() throws {
        var script = try whole()
        script.end(.digestDiffers(from: Self.held))
        #expect(script.ending == nil)
        answerRest(&script)
        script.write(to: Self.length)
        let plans = script.plans.count
        script.end(.digestDiffers(from: Self.held))
        #expect(script.plans.count == plans)
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.failure?.message.contains("(Content-Digest)") == true)
        #expect(script.failure?.message.contains(Remedy.ignoredChecksums.rawValue) == true)
    }

    @Test("with a checksum of the user, bytes that do not match their response twice are verified by it")
    func partTwiceUnderAChecksum() throws {
        var script = try whole { $0.options.checksum = Self.wrong }
        script.end(.digestDiffers(from: Self.held))
        answerRest(&script)
        script.write(to: Self.length)
        script.end(.digestDiffers(from: Self.held))
        #expect(script.actions.contains { if case .verify = $0 { true } else { false } })
    }

    @Test(
        "a whole response that does not match its content's field is fetched once more, then kept aside",
        arguments: [200, 206], ["Content-MD5", "Content-Digest"])
    func wholeTwice(_ status: Int, _ field: String) throws {
        let value = field == "Content-MD5" ? String(repeating: "A", count: 22) + "==" : Self.digest.1
        var script = try single(status: status, [(field, value)])
        script.end(.digestDiffers(from: 0))
        #expect(script.ending == nil && script.plans.count == 2)
        finishSingle(&script, status, [(field, value)])
        script.end(.digestDiffers(from: 0))
        #expect(script.plans.count == 2 && script.actions.contains(.setAside))
        #expect(script.failure?.message.contains("(\(field))") == true)
    }

    /// Feeds the result of a verification.
    private func verify(_ script: inout TransferScript) throws {
        script.end(.complete(.delimited))
        let checksums = script.actions.compactMap { if case .verify(let checksums, _) = $0 { checksums } else { nil } }
        let expected = try #require(checksums.last?.last)
        script.feed(.verified(mismatches: [ChecksumMismatch(expected: expected, found: nil)]))
    }

    @Test("a wrong field is named, and costs one fetch", arguments: ["Repr-Digest", "x-amz-checksum-sha256"])
    func ofTheWhole(_ field: String) throws {
        let value = String(repeating: "A", count: 43) + "="
        var script = try single([(field, field == "Repr-Digest" ? "sha-256=:\(value):" : value)])
        try verify(&script)
        #expect(script.plans.count == 1 && script.actions.contains(.setAside))
        #expect(script.failure?.message.contains("(\(field))") == true)
    }

    @Test("the checksum of a redirect is that of the file it leads to, if the length is that one too")
    func ofARedirect() throws {
        for size in [Self.length, 5] {
            var script = try TransferScript()
            script.feed(.begin(nil))
            let tag = String(repeating: "0", count: 64)
            script.answer(
                302, [("Location", "/there"), ("X-Linked-Etag", "\"\(tag)\""), ("X-Linked-Size", "\(size)")])
            script.endCancelled()
            finishSingle(&script, 206, [])
            guard size == Self.length else {
                script.end(.complete(.delimited))
                #expect(isPublished(script))
                continue
            }
            try verify(&script)
            #expect(script.failure?.message.contains("(X-Linked-Etag)") == true)
        }
    }

    /// Anyone on the way could otherwise make a good file fail.
    @Test("the checksum of a redirect or response from another origin does not count", arguments: [true, false])
    func ofAnotherOrigin(_ isRedirect: Bool) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/there")])
        script.endCancelled()
        let linked = [
            ("X-Linked-Etag", "\"\(String(repeating: "0", count: 64))\""), ("X-Linked-Size", "\(Self.length)"),
        ]
        if isRedirect {
            script.answer(302, linked + [("Location", "https://cdn.example.net/file")])
            script.endCancelled()
        }
        finishSingle(&script, 206, isRedirect ? [] : linked)
        script.end(.complete(.delimited))
        #expect(isPublished(script))
    }

    @Test("no field is checked if the user says so, except the user's own checksum")
    func ignored() throws {
        let fields = [
            Self.digest, ("Repr-Digest", Self.digest.1), ("Content-MD5", String(repeating: "A", count: 22) + "=="),
        ]
        for own in [nil, Self.wrong] {
            let script = try single(fields) { ($0.options.ignoresServerChecksums, $0.options.checksum) = (true, own) }
            #expect(script.prepares.last?.checksums == (own.map { [$0] } ?? []))
        }
        var script = try TransferScript { $0.options.ignoresServerChecksums = true }
        let other = try #require(Self.wrong)
        let held = HeldDownload(
            representation: Representation(completeLength: Self.length, entityTag: EntityTag(fieldValue: "\"a\"")),
            written: ByteRangeSet([ByteRange(0, Self.length)]), checksums: [other])
        script.feed(.begin(held))
        #expect(isPublished(script))
    }

    @Test("a file that matches the user's checksum is published, whatever the server's says")
    func outranked() throws {
        let own = Checksum(algorithm: .sha512, value: Array(repeating: 0, count: 64))
        var script = try single([("Repr-Digest", Self.digest.1)]) { $0.options.checksum = own }
        try verify(&script)
        #expect(isPublished(script) && script.ending == nil)
        let warnings = script.notices(.verified).filter { $0.level == .warning && $0.message.contains("(Repr-Digest)") }
        #expect(warnings.count == 1)
    }
}
