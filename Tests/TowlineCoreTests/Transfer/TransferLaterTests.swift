import Testing
import TowlineCore

/// Answers that ask for a later or another request, and do not contain the file.
@Suite("An answer that asks for another request")
struct TransferLaterTests {
    @Test("A 304 after If-Range leads to a plain range, once")
    func notModified() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        #expect(script.last.field("If-Range") == "\"a\"")
        script.answer(304)
        script.endCancelled()
        #expect(script.last.field("If-Range") == nil)
        #expect(script.last.field("Range") == "bytes=\(400_000 - 16_384)-999999")
        #expect(script.prepares.count == 1 && script.notices(.restarted).isEmpty)
        script.give(script.last, length: 1_000_000)
        #expect(script.ending == nil)
    }

    @Test("A 304 to a request without a condition is an error, and no reason to leave out Range")
    func unaskedNotModified() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(304)
        script.endCancelled()
        #expect(script.failure?.code == .invalidResponse)
        #expect(script.plans.count == 1 && script.prepares.isEmpty)
    }

    @Test(
        "A wait that concerns one file does not hold up the host",
        arguments: [
            (202, [("Retry-After", "7")], false), (403, [("Retry-After", "7")], false),
            (302, [("Retry-After", "7"), ("Location", "/file.iso")], false),
            (307, [("Retry-After", "7"), ("Location", TransferScript.url)], false),
            (503, [("Retry-After", "7")], true), (529, [("Retry-After", "7")], true),
        ] as [(Int, [(String, String)], Bool)])
    func later(_ status: Int, _ fields: [(String, String)], _ isOfHost: Bool) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        let first = script.last
        script.answer(status, fields)
        script.endCancelled()
        let reports = script.actions.contains { if case .report(.leaveAlone, _) = $0 { true } else { false } }
        #expect(reports == isOfHost)
        #expect(script.ending == nil && script.plans.count == 1)
        script.now = .seconds(6)
        script.feed(.tick)
        #expect(script.plans.count == 1)
        script.now = .seconds(8)
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.url == first.url)
    }

    @Test("A redirect to another URL is followed at once, whatever Retry-After says")
    func redirect() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(302, [("Retry-After", "7"), ("Location", "/other")])
        #expect(script.plans.count == 2 && "\(script.last.url)".hasSuffix("/other"))
    }

    @Test("The answer with the first part of the file to a plain request is used, and the rest is requested")
    func partWithoutRange() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(400)
        script.endCancelled()
        #expect(script.last.field("Range") == nil)
        script.answer(206, [("Content-Range", "bytes 0-399999/1000000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 400_000)
        script.end(.stopped)
        #expect(script.last.lease == ByteRange(400_000, 1_000_000))
        #expect(script.last.field("If-Range") == "\"a\"")
    }

    @Test("A stored file with a label is resumed, and another coding is not joined")
    func label() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        let fields = [("ETag", "\"a\""), ("Content-Encoding", "gzip")]
        let head = ResponseHead(
            status: 206, fields: HTTPFields(fields + [("Content-Range", "bytes 0-999999/1000000")]))
        let verdict = ResponseEvaluator.verdict(on: head, to: script.last.question).withoutLabel
        script.feed(.answered(script.last.id, verdict))
        script.feed(.prepared)
        script.write(to: 400_000)
        script.end(cut())
        #expect(script.last.field("If-Range") == "\"a\"" && script.last.lease.lowerBound == 400_000)
        #expect(script.notices(.singleStream).isEmpty)
        let lower = script.last.seam.lowerBound
        let part = [("Content-Range", "bytes \(lower)-999999/1000000"), ("Content-Length", "\(1_000_000 - lower)")]
        script.answer(206, part + [("ETag", "\"a\""), ("Content-Encoding", "br")])
        #expect(script.fresh.contains(.cancel(script.plans[1].id)))
        script.endCancelled()
        script.answer(206, part + fields)
        #expect(!script.fresh.contains(.cancel(script.last.id)))
    }

    @Test("A notice names a known and an unknown coding", arguments: ["gzip", "utf-8"])
    func notices(_ coding: String) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(206, [("Content-Range", "bytes 0-999/1000"), ("ETag", "\"a\""), ("Content-Encoding", coding)])
        let notice = try #require(script.notices(.singleStream).first)
        #expect(notice.message.contains(coding) && notice.message.contains("restarts") == (coding == "gzip"))
    }
}
