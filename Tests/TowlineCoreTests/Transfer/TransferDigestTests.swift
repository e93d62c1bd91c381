import Testing
import TowlineCore

/// A digest of one response (RFC 9530 §2) is known to match when the response has ended, and not when its last byte is
/// written: what looks whole in between is not published.
@Suite("Digests of one response")
struct TransferDigestTests {
    private static let length: Int64 = 3_000_000

    /// Everything is written under a digest of the response; its end has not come.
    private func whole(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript(change)
        script.feed(.begin(nil))
        script.answer(
            206,
            [
                ("Content-Range", "bytes 0-\(Self.length - 1)/\(Self.length)"), ("ETag", "\"a\""),
                ("Content-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:"),
            ])
        script.feed(.prepared)
        script.write(to: Self.length)
        return script
    }

    private func isPublished(_ script: TransferScript) -> Bool {
        script.actions.contains { if case .publish = $0 { true } else { false } }
    }

    @Test("a look at what is written does not publish it before its response has ended")
    func lookBeforeTheEnd() throws {
        var script = try whole()
        let first = script.last
        script.now = .milliseconds(100)
        script.feed(.tick)
        #expect(script.fresh.isEmpty, "\(script.fresh)")
        script.end(first, .digestDiffers(from: 0))
        #expect(!isPublished(script))
        #expect(script.plans.count == 2 && script.last.lease.lowerBound == 0)
    }

    @Test("with an end that matches it is published")
    func matches() throws {
        var script = try whole()
        script.feed(.tick)
        script.end(.complete(.delimited))
        #expect(isPublished(script))
    }

    @Test("one that never ends is given up, and what it wrote is taken as it is")
    func neverEnds() throws {
        var script = try whole()
        for second in 1...40 {
            script.now = .seconds(second)
            script.feed(.tick)
            script.endCancelled()
        }
        #expect(isPublished(script))
    }

    @Test("where a checksum is to tell, a response that proves wrong while all is ended is still fetched again")
    func whileDraining() throws {
        var script = try whole { $0.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 0, count: 32)) }
        let first = script.last
        script.feed(.tick)
        script.end(first, .digestDiffers(from: 0))
        #expect(!script.actions.contains { if case .verify = $0 { true } else { false } })
        #expect(script.plans.count == 2)
    }
}
