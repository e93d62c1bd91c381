import Testing
import TowlineCore

/// `--max-size`.
@Suite("The longest file that is accepted")
struct TransferSizeTests {
    private func limited() throws -> TransferScript {
        var script = try TransferScript { $0.maximumSize = 1_000_000 }
        script.feed(.begin(nil))
        return script
    }

    private func isPrepared(_ script: TransferScript) -> Bool {
        script.actions.contains { if case .prepare = $0 { true } else { false } }
    }

    @Test("a longer one is refused before there is a part file", arguments: [200, 206])
    func lengthInTheHead(_ status: Int) throws {
        var script = try limited()
        let fields = status == 206 ? [("Content-Range", "bytes 0-1000000/1000001")] : [("Content-Length", "1000001")]
        script.answer(status, fields)
        script.end(script.last, .cancelled)
        #expect(script.failure?.code == .fileTooLarge && !isPrepared(script), "\(script.actions)")
    }

    @Test("one of exactly that length is not")
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

    @Test("a small file goes by the machine, which knows the limit")
    func small() throws {
        var terms = TransferTerms(source: try HTTPURL(parsing: TransferScript.url))
        #expect(SmallFilePolicy.suffices(for: terms))
        terms.maximumSize = 10
        #expect(!SmallFilePolicy.suffices(for: terms))
    }
}
