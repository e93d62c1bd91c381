import Testing
import TowlineCore

/// `--ignore-length`.
@Suite("A length that the user ignores")
struct IgnoredLengthTests {
    private func begun() throws -> TransferScript {
        var script = try TransferScript {
            $0.ignoresLength = true
            $0.options.isSequential = true
            $0.options.connections = nil
        }
        script.feed(.begin(nil))
        #expect(script.last.field("Range") == nil)
        return script
    }

    /// The first 1000 bytes of a response of unknown length are written.
    private func written() throws -> TransferScript {
        var script = try begun()
        script.answer(200, [("ETag", "\"a\""), ("Accept-Ranges", "bytes")])
        script.feed(.prepared)
        script.write(to: 1_000)
        return script
    }

    @Test("the file ends where the response ends")
    func end() throws {
        var script = try written()
        script.end(.complete(.closed))
        #expect(script.machine.ledger.completeLength == 1_000 && script.machine.phase == .publishing)
        #expect(script.notices(.unverified).map(\.message).allSatisfy { $0.contains(Remedy.ignoredLength.sentence) })
        #expect(script.notices(.unverified).count == 1)
    }

    @Test("a break starts over without a range, although the server offers ranges")
    func cutShort() throws {
        var script = try written()
        script.end(cut())
        script.now = .seconds(10)
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.field("Range") == nil)
    }

    @Test("held bytes of a known length do not give their length to the new response")
    func held() throws {
        var script = try TransferScript {
            $0.ignoresLength = true
            $0.options.isSequential = true
        }
        var representation = Representation(entityTag: EntityTag(fieldValue: "\"a\""))
        representation.completeLength = 5_000
        script.feed(.begin(HeldDownload(representation: representation, written: ByteRangeSet([ByteRange(0, 3_000)]))))
        #expect(script.last.field("Range") == nil)
        script.answer(200, [("ETag", "\"a\"")])
        #expect(script.prepares.last?.representation.completeLength == nil)
    }
}

/// `--max-size`.
@Suite("The maximum length of a file")
struct TransferSizeTests {
    private func limited() throws -> TransferScript {
        var script = try TransferScript { $0.options.maximumSize = 1_000_000 }
        script.feed(.begin(nil))
        return script
    }

    private func isPrepared(_ script: TransferScript) -> Bool {
        script.actions.contains { if case .prepare = $0 { true } else { false } }
    }

    @Test("a longer file is refused before a part file exists", arguments: [200, 206])
    func lengthInTheHead(_ status: Int) throws {
        var script = try limited()
        let fields = status == 206 ? [("Content-Range", "bytes 0-1000000/1000001")] : [("Content-Length", "1000001")]
        script.answer(status, fields)
        script.end(script.last, .cancelled)
        #expect(script.failure?.code == .fileTooLarge && !isPrepared(script), "\(script.actions)")
    }

    @Test("a file of exactly that length is accepted")
    func exactly() throws {
        var script = try limited()
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000")])
        #expect(isPrepared(script) && script.failure?.code == nil)
    }

    @Test("without a length the download ends where it is exceeded")
    func withoutLength() throws {
        var script = try limited()
        script.answer(200, [("Transfer-Encoding", "chunked")])
        script.feed(.prepared)
        script.write(to: 1_000_000)
        script.feed(.tick)
        #expect(script.failure?.code == nil)
        script.write(to: 1_000_001)
        script.feed(.tick)
        script.end(script.last, .cancelled)
        #expect(script.failure?.code == .fileTooLarge)
    }

    @Test("a small file is fetched by the state machine, which knows the limit")
    func small() throws {
        var terms = TransferTerms(source: try HTTPURL(parsing: TransferScript.url))
        #expect(SmallFilePolicy.suffices(for: terms))
        terms.options.maximumSize = 10
        #expect(!SmallFilePolicy.suffices(for: terms))
    }
}
