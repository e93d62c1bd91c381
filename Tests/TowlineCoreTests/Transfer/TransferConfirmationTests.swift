import Testing
import TowlineCore

/// A server that is half updated, or a proxy, may answer with an empty or a coded body for a while.
@Suite("An empty or coded answer to a restart")
struct TransferConfirmationTests {
    private static let good = [("Content-Length", "1000000")]
    private static let empty = [("Content-Length", "0")]
    private static let coded = [("Content-Length", "500"), ("Content-Encoding", "gzip")]

    /// Returns an interrupted download that holds 400,000 of 1,000,000 bytes without a validator: its next attempt asks
    /// for the whole file.
    private func interrupted() throws -> TransferScript {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000, tag: nil)
        script.end(cut())
        script.now = .seconds(1)
        script.feed(.tick)
        #expect(script.last.lease.lowerBound == 0)
        return script
    }

    @Test("is confirmed by a second request before it replaces bytes", arguments: [empty, coded])
    func confirmed(_ answer: [(String, String)]) throws {
        var script = try interrupted()
        script.answer(200, answer)
        script.endCancelled()
        #expect(script.prepares.count == 1)
        #expect(script.last.isConfirmation && script.last.field("Cache-Control") == "no-cache")
        script.answer(200, answer)
        #expect(script.prepares.count == 2 && script.prepares.last?.isReplacement == true)
    }

    @Test("is forgotten if the second answer is the file", arguments: [empty, coded])
    func forgotten(_ answer: [(String, String)]) throws {
        var script = try interrupted()
        script.answer(200, answer)
        script.endCancelled()
        script.answer(200, Self.good)
        script.feed(.prepared)
        #expect(script.prepares.count == 2)
        #expect(script.machine.ledger.completeLength == 1_000_000)
        script.write(to: 1000)
        script.end(cut())
        script.now = .seconds(5)
        script.feed(.tick)
        #expect(!script.last.isConfirmation)
    }

    @Test("is not confirmed if no bytes are held", arguments: [empty, coded])
    func nothingHeld(_ answer: [(String, String)]) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, answer)
        #expect(script.prepares.count == 1)
    }

    @Test("a 416 that calls the file empty is confirmed, too")
    func unsatisfiable() throws {
        var script = try interrupted()
        script.answer(416, [("Content-Range", "bytes */0")])
        script.endCancelled()
        #expect(script.prepares.count == 1 && script.last.isConfirmation)
    }

    @Test("a coded answer to a range under the same validator is confirmed before the bytes are discarded")
    func codedUnderTheSameTag() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        let coded = [("Content-Encoding", "gzip"), ("ETag", "\"a\"")]
        script.answer(200, coded)
        script.endCancelled()
        script.answer(200, coded)
        script.endCancelled()
        #expect(script.notices(.restarted).isEmpty && script.last.isConfirmation)
        script.answer(206, [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\"")])
        #expect(script.prepares.count == 1)
    }
}
