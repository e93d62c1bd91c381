import Testing
import TowlineCore

/// Tests by value how a transfer acts on the conclusions of `HeldVersion`.
@Suite("A response that may be an error instead of the file")
struct TransferConfirmationTests {
    private static let good = [("Content-Length", "1000000")]
    private static let empty = [("Content-Length", "0")]
    private static let coded = [("Content-Length", "500"), ("Content-Encoding", "gzip")]
    private static let json = [("Content-Length", "29"), ("Content-Type", "application/json")]
    private static let video = [("Content-Length", "2000000"), ("Content-Type", "video/mp4")]

    /// Returns an interrupted download that holds 400,000 of 1,000,000 bytes. Without a validator (`tag`), its next
    /// attempt asks for the whole file.
    private func interrupted(
        tag: String? = nil, _ change: (inout TransferTerms) -> Void = { _ in }
    ) throws -> TransferScript {
        var script = try TransferScript(change)
        script.begin(length: 1_000_000, position: 400_000, tag: tag)
        script.end(cut())
        script.now = .seconds(1)
        script.feed(.tick)
        return script
    }

    /// Lets time pass until the next request is sent, at most a minute. Returns the time that passed.
    private func wait(_ script: inout TransferScript) -> Duration {
        let (count, start) = (script.plans.count, script.now)
        while script.plans.count == count, script.ending == nil, script.now - start < .seconds(60) {
            script.now += .milliseconds(100)
            script.feed(.tick)
        }
        return script.now - start
    }

    @Test(
        "is a failed attempt that keeps the bytes, if it is refused", arguments: [empty, coded, json], [nil, "\"a\""])
    func refused(_ answer: [(String, String)], _ tag: String?) throws {
        var script = try interrupted(tag: tag) { $0.options.maximumTries = 3 }
        for _ in 0..<3 {
            #expect(!script.last.isConfirmation)
            script.answer(200, answer)
            script.endCancelled()
            _ = wait(&script)
        }
        #expect(script.failure?.code == .transient)
        #expect(script.failure?.message.contains(Remedy.acceptedChange.rawValue) == true)
        #expect(script.prepares.count == 1)
    }

    @Test("is taken if the user accepts whatever the server sends", arguments: [empty, coded, json, video])
    func accepted(_ answer: [(String, String)]) throws {
        var script = try interrupted(tag: "\"a\"") { $0.changed = .accept }
        script.answer(200, answer)
        #expect(script.prepares.count == 2 && script.prepares.last?.isReplacement == true)
    }

    @Test("is taken if no bytes are held", arguments: [empty, coded, json])
    func nothingHeld(_ answer: [(String, String)]) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, answer)
        #expect(script.prepares.count == 1)
    }

    @Test("is confirmed by one plain request after two seconds, whose body is the file", arguments: [nil, "\"a\""])
    func confirmed(_ tag: String?) throws {
        var script = try interrupted(tag: tag)
        script.answer(200, Self.video)
        script.endCancelled()
        #expect(script.prepares.count == 1)
        #expect(wait(&script) >= .seconds(2))
        let plan = script.last
        #expect(plan.isConfirmation && plan.url.description == TransferScript.url)
        #expect(plan.field("Cache-Control") == "no-cache")
        #expect(plan.field("Range") == nil && plan.field("If-Range") == nil)
        script.answer(200, Self.video)
        #expect(script.prepares.count == 2 && script.prepares.last?.isReplacement == true)
        script.feed(.prepared)
        #expect(script.fresh.contains(.proceed(plan.id)) && script.last.id == plan.id)
        #expect(script.machine.ledger.lease(of: plan.id) == ByteRange(0, 2_000_000))
    }

    @Test(
        "is a failed attempt if the second response differs",
        arguments: [
            [("Content-Length", "1999999"), ("Content-Type", "video/mp4")],
            [("Content-Length", "2000000"), ("Content-Type", "video/webm")],
            json,
        ])
    func notRepeated(_ answer: [(String, String)]) throws {
        var script = try interrupted(tag: "\"a\"") { $0.options.maximumTries = 9 }
        script.answer(200, Self.video)
        script.endCancelled()
        _ = wait(&script)
        script.answer(200, answer)
        script.endCancelled()
        #expect(script.prepares.count == 1)
        _ = wait(&script)
        #expect(!script.last.isConfirmation && script.last.lease.lowerBound == 400_000)
    }

    @Test("does not count for the limit of attempts") func countsNothing() throws {
        var script = try interrupted(tag: "\"a\"") { $0.options.maximumTries = 1 }
        script.answer(200, Self.video)
        script.endCancelled()
        _ = wait(&script)
        #expect(script.failure == nil && script.last.isConfirmation)
    }

    @Test("continues the file if the second response has the held version") func heldVersion() throws {
        var script = try interrupted(tag: "\"a\"")
        script.answer(200, Self.video)
        script.endCancelled()
        _ = wait(&script)
        let plan = script.last
        #expect(plan.lease == ByteRange(400_000, 1_000_000) && plan.overlap == 400_000)
        script.answer(200, Self.good + [("ETag", "\"a\"")])
        #expect(script.fresh.contains(.proceed(plan.id)) && script.prepares.count == 1)
        #expect(script.machine.ledger.written.count == 400_000)
        script.write(to: 1_000_000)
        script.end(.complete(.delimited))
        #expect(script.actions.contains { if case .publish = $0 { true } else { false } })
    }

    @Test("confirms nothing if the second request fails", arguments: [true, false])
    func failedConfirmation(_ isAnswered: Bool) throws {
        var script = try interrupted(tag: "\"a\"")
        script.answer(200, Self.video)
        script.endCancelled()
        _ = wait(&script)
        if isAnswered {
            script.answer(503)
            script.endCancelled()
        } else {
            script.end(cut(.connectFailed))
        }
        _ = wait(&script)
        #expect(!script.last.isConfirmation && script.last.lease.lowerBound == 400_000)
    }

    @Test("follows the redirect of the second request") func redirected() throws {
        var script = try interrupted(tag: "\"a\"")
        script.answer(200, Self.video)
        script.endCancelled()
        _ = wait(&script)
        script.answer(302, [("Location", "https://cdn.example.net/new")])
        script.endCancelled()
        #expect(script.last.isConfirmation && script.last.field("Range") == nil)
        script.answer(200, Self.video)
        #expect(script.prepares.count == 2)
    }

    @Test("is decided by the checksum of the user, unless it is refused") func checksum() throws {
        for (answer, count) in [(Self.video, 2), (Self.json, 1)] {
            var script = try interrupted { $0.options.checksum = try? Checksum(parsing: TransferScript.sum) }
            // Nodes of one server may differ, so a change is seen twice.
            for _ in 0..<count {
                script.answer(200, answer)
                if script.prepares.count == 1 { script.endCancelled() }
            }
            #expect(script.prepares.count == count)
            #expect(script.last.field("Range") != nil)
        }
    }

    @Test("a 416 that calls the file empty is refused, too") func unsatisfiable() throws {
        var script = try interrupted()
        script.answer(416, [("Content-Range", "bytes */0")])
        script.endCancelled()
        #expect(script.prepares.count == 1)
    }
}
