import Testing
import TowlineCore

@Suite("A file that changes on the server")
struct TransferChangeTests {
    private let other = [("Content-Length", "1000000"), ("ETag", "\"b\"")]

    /// An interrupted download of 1,000,000 bytes whose next attempt has just been sent.
    private func interrupted(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript(change)
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        return script
    }

    @Test("is confirmed by a second request, without caches, before any byte is discarded")
    func confirms() throws {
        var script = try interrupted()
        script.answer(200, other)
        script.endCancelled()
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.last.field("Cache-Control") == "no-cache")
        #expect(script.last.isConfirmation)
        // One cache was wrong: the download continues.
        script.answer(206, [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\"")])
        #expect(script.prepares.count == 1)
        #expect(script.notices(.restarted).isEmpty)
    }

    @Test("is fetched again into a new part file, from the response that showed the change")
    func restarts() throws {
        var script = try interrupted()
        script.answer(200, other)
        script.endCancelled()
        let confirmation = script.last
        script.answer(200, other)
        #expect(script.notices(.restarted).count == 1)
        #expect(script.prepares.last?.isReplacement == true)
        #expect(script.prepares.last?.representation.entityTag?.fieldValue == "\"b\"")
        script.feed(.prepared)
        #expect(script.fresh.contains(.proceed(confirmation.id)))
        #expect(script.machine.ledger.lease(of: confirmation.id) == ByteRange(0, 1_000_000))
    }

    /// Returns a download of 4,000,000 bytes that resumes after a kill and finds another file; `answer` holds the
    /// header fields.
    private func changedWhileAway(
        _ answer: [(String, String)], connections: Int? = 4
    ) throws -> TransferScript {
        var script = try TransferScript { $0.options.connections = connections }
        let representation = Representation(completeLength: 4_000_000, entityTag: EntityTag(fieldValue: "\"a\""))
        script.feed(
            .begin(HeldDownload(representation: representation, written: ByteRangeSet([ByteRange(0, 400_000)]))))
        script.answer(200, answer)
        script.endCancelled()
        script.answer(200, answer)
        return script
    }

    @Test("is fetched over several connections if ranges are offered")
    func restartsWithSeveral() throws {
        var script = try changedWhileAway(
            [("Content-Length", "5000000"), ("ETag", "\"b\""), ("Accept-Ranges", "bytes")])
        #expect(script.notices(.restarted).count == 1 && script.prepares.last?.isReplacement == true)
        let keeper = script.last
        script.feed(.prepared)
        #expect(script.plans.count == 3 && script.last.id != keeper.id)
        #expect(script.last.field("If-Range") == "\"b\"")
    }

    @Test("that changes once more is fetched from the response that shows the change")
    func changesTwice() throws {
        var script = try changedWhileAway(
            [("Content-Length", "5000000"), ("ETag", "\"b\""), ("Accept-Ranges", "bytes")], connections: 2)
        script.feed(.prepared)
        let (first, second) = (script.plans[script.plans.count - 2], script.last)
        script.write(first, to: 1_000_000)
        script.end(first, cut())
        script.end(second, cut())
        for _ in 0..<2 {
            script.now += .seconds(5)
            script.feed(.tick)
            script.answer(200, [("Content-Length", "5000000"), ("ETag", "\"c\""), ("Accept-Ranges", "bytes")])
            script.endCancelled()
        }
        #expect(script.notices(.restarted).count == 2)
        #expect(script.prepares.last?.representation.entityTag?.fieldValue == "\"c\"")
    }

    @Test(
        "is fetched from the response that showed it if further connections would fail or would not help",
        arguments: [
            [("Content-Length", "5000000"), ("ETag", "\"b\"")],
            [("Content-Length", "5000000"), ("ETag", "\"b\""), ("Accept-Ranges", "none")],
            [("Content-Length", "500000"), ("ETag", "\"b\""), ("Accept-Ranges", "bytes")],
            [("ETag", "\"b\""), ("Accept-Ranges", "bytes")],
        ])
    func restartsWithOne(_ answer: [(String, String)]) throws {
        let script = try changedWhileAway(answer)
        #expect(script.notices(.restarted).count == 1)
        #expect(script.prepares.last?.isReplacement == true)
        #expect(script.machine.ledger.lease(of: script.last.id)?.lowerBound == 0)
    }

    @Test func isFetchedFromTheAnswerThatToldWhereOneConnectionIsAsked() throws {
        let script = try changedWhileAway(
            [("Content-Length", "5000000"), ("ETag", "\"b\""), ("Accept-Ranges", "bytes")], connections: 1)
        #expect(script.prepares.last?.isReplacement == true)
    }

    @Test("is refused with its own error when the user asked not to start over")
    func refuses() throws {
        var script = try interrupted { $0.changed = .fail }
        script.answer(200, other)
        script.endCancelled()
        script.answer(200, other)
        script.endCancelled()
        #expect(script.failure?.code == .changedOnServer)
        #expect(script.prepares.count == 1)
    }

    /// The held bytes would be discarded, no matter whether the file or the server is at fault.
    @Test("is also refused if only the bytes before the seam show it", arguments: [true, false])
    func refusesBySeam(_ mayRestart: Bool) throws {
        var script = try interrupted { $0.changed = mayRestart ? .restart : .fail }
        script.answer(206, [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\"")])
        script.end(.overlapDiffers)
        #expect(script.failure?.code == (mayRestart ? nil : .changedOnServer))
        #expect(script.notices(.restarted).count == (mayRestart ? 1 : 0))
    }

    @Test(
        "is noticed in every 206, also in a response to If-Range",
        arguments: [
            [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"b\"")],
            [("Content-Range", "bytes 383616-999998/999999"), ("ETag", "\"b\"")],
        ])
    func contradictingRange(_ fields: [(String, String)]) throws {
        var script = try interrupted()
        script.answer(206, fields)
        script.endCancelled()
        #expect(script.last.isConfirmation)
        script.answer(206, fields)
        script.endCancelled()
        #expect(script.last.lease == ByteRange(0, .max))
        #expect(script.last.field("Range") == "bytes=0-")
    }

    @Test("that never stops changing is requested with waits, up to the user's limit")
    func neverStops() throws {
        var script = try interrupted { $0.options.maximumTries = 5 }
        func wait() {
            script.endCancelled()
            script.now += script.machine.wait(now: script.now) ?? .zero
            script.feed(.tick)
        }
        for round in 0..<40 where script.ending == nil {
            script.answer(206, [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"\(round)\"")])
            wait()
            guard script.ending == nil, script.last.lease.lowerBound == 0 else { continue }
            script.answer(206, [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"x\(round)\"")])
            script.feed(.prepared)
            script.write(to: 400_000)
            script.end(cut())
            wait()
        }
        #expect(script.failure?.code == .transient)
        #expect(script.notices(.restarted).count == 5)
        #expect(script.now > .seconds(10), "\(script.now)")
    }

    @Test("a web page instead of the file is not a change: the download waits and retries")
    func captivePortal() throws {
        var script = try interrupted()
        script.answer(200, [("Content-Length", "512"), ("Content-Type", "text/html; charset=utf-8")])
        script.endCancelled()
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.plans.count == 2)
        script.now += .seconds(5)
        script.feed(.tick)
        #expect(script.plans.count == 3)
        #expect(script.last.lease.lowerBound == 400_000)
    }

    @Test(
        "ranges other than the requested one are refused, then replaced by one stream",
        arguments: [
            [("Content-Range", "bytes 0-616383/1000000"), ("ETag", "\"a\"")],
            [("ETag", "\"a\"")],
            [("Content-Range", "rows 1-2/3"), ("ETag", "\"a\"")],
            [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\""), ("Content-Encoding", "gzip")],
            [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\""), ("Content-Length", "5")],
            [("Content-Type", "multipart/byteranges; boundary=x"), ("ETag", "\"a\"")],
        ])
    func refusedRanges(_ fields: [(String, String)]) throws {
        var script = try interrupted()
        for _ in 0..<2 {
            script.answer(206, fields)
            script.endCancelled()
        }
        // Every verdict leads to one stream from the start.
        #expect(script.last.lease == ByteRange(0, .max))
        #expect(script.actions.allSatisfy { if case .proceed(let id) = $0 { id == script.plans[0].id } else { true } })
    }
}

@Suite("Redirects, expiry and refusals")
struct TransferElsewhereTests {
    @Test("credentials and the user's fields stay at the first origin, and are sent if a redirect returns there")
    func origins() throws {
        var script = try TransferScript { $0.userFields = HTTPFields([("Authorization", "Bearer secret")]) }
        script.feed(.begin(nil))
        #expect(script.last.field("Authorization") == "Bearer secret")
        #expect(script.last.sendsCredentials)
        for (target, isOurs) in [
            ("https://cdn.example.net/x", false), ("https://example.org:8443/x", false),
            ("https://example.org/y", true),
        ] {
            script.answer(302, [("Location", target)])
            script.endCancelled()
            #expect(script.last.url.description == target)
            #expect(script.last.sendsCredentials == isOurs)
            #expect(script.last.fields.has("Authorization") == isOurs)
        }
    }

    @Test("netrc entries may apply to each target, but never over http after https")
    func netrc() throws {
        var script = try TransferScript { $0.options.allowsDowngrade = true }
        script.feed(.begin(nil))
        #expect(script.last.sendsNetrc)
        for (target, isAllowed) in [
            ("https://cdn.example.net/x", true), ("http://cdn.example.net/x", false), ("http://other.example/x", false),
            ("https://other.example/x", true), ("http://example.org/file.iso", false), (TransferScript.url, true),
        ] {
            script.answer(302, [("Location", target)])
            script.endCancelled()
            #expect(script.last.url.description == target)
            #expect(script.last.sendsNetrc == isAllowed && script.last.sendsStoredCookies)
        }
    }

    @Test(
        "redirects that downgrade or lead to another scheme are refused",
        arguments: [
            "http://example.org/file.iso", "file:///etc/passwd", "javascript:alert(1)", "",
        ])
    func refused(_ target: String) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(302, [("Location", target)])
        script.endCancelled()
        #expect(script.failure?.code == .redirectRefused)
        #expect(script.plans.count == 1)
    }

    @Test(
        "more than twenty redirects in a row are refused, also in a circle",
        arguments: [["/a"], ["/a", "/b", "/c"], [TransferScript.url], (0..<21).map { "/\($0)" }])
    func tooMany(_ targets: [String]) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        for number in 0..<21 {
            script.answer(302, [("Location", targets[number % targets.count])])
            script.endCancelled()
        }
        #expect(script.plans.count == 21)
        #expect(script.failure?.code == .redirectRefused)
        #expect(script.failure?.message.contains(Remedy.moreRedirects.rawValue) == true)
    }

    @Test("a redirect to the same URL is followed: the second response may be the file")
    func sameURL() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        for _ in 0..<2 {
            script.answer(302, [("Location", TransferScript.url)])
            script.endCancelled()
        }
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        #expect(script.failure == nil && script.plans.count == 3)
        #expect(script.plans.allSatisfy { $0.sendsCredentials && $0.sendsStoredCookies })
    }

    @Test(
        "an expired link is requested again at the first URL, and the bytes are kept",
        arguments: [400, 403, 419, 440, 498, 200])
    func expiredLink(_ status: Int) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/signed?one")])
        script.endCancelled()
        script.answer(206, [("Content-Range", "bytes 0-999999/1000000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 400_000)
        script.end(cut())
        #expect(script.last.url.host == "cdn.example.net")
        let page = [("Content-Type", "text/html"), ("Content-Length", "500")]
        script.answer(status, status == 200 ? page : [])
        script.endCancelled()
        #expect(script.last.url.description == TransferScript.url)
        #expect(script.last.lease.lowerBound == 400_000)
    }

    @Test(
        "404 before the first byte is final; so is 403 at the first URL",
        arguments: [(404, "notFound"), (403, "refusedByServer")])
    func permanent(_ status: Int, _ code: String) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        // One refusal with Range, and one without.
        for _ in 0..<2 { script.refuse(status, .other) }
        #expect(script.plans.count == 2)
        #expect(script.failure?.code.description == code)
        #expect(script.failure?.status == status)
    }

    @Test("Retry-After is obeyed for the whole host")
    func retryAfter() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(503, [("Retry-After", "7")])
        script.endCancelled()
        #expect(script.actions.contains(.report(.leaveAlone(.seconds(7)), of: script.last.url.origin)))
        script.now = .seconds(6)
        script.feed(.tick)
        #expect(script.plans.count == 1)
        script.now = .seconds(7)
        script.feed(.tick)
        #expect(script.plans.count == 2)
    }

    @Test(
        "429 and 503 mean that the host gets too many requests, other failures do not", arguments: [429, 503, 500, 404])
    func overloaded(_ status: Int) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(status)
        script.endCancelled()
        // The first refusal may be due to the Range field.
        if script.plans.count == 2 { script.refuse(status, .other) }
        let isOverloaded = script.actions.contains(.report(.overloaded, of: script.last.url.origin))
        #expect(isOverloaded == [429, 503].contains(status))
    }

    @Test("transient failures end at the user's limit, permanent ones at once")
    func limits() throws {
        var script = try TransferScript { $0.options.maximumTries = 3 }
        script.feed(.begin(nil))
        for _ in 0..<3 {
            script.end(cut(.connectFailed))
            script.now += .seconds(100)
            script.feed(.tick)
        }
        #expect(script.plans.count == 3)
        #expect(script.failure?.code == .transient)
        var untrusted = try TransferScript()
        untrusted.feed(.begin(nil))
        untrusted.end(cut(.certificateRefused))
        #expect(untrusted.failure?.code == .untrustedServer)
    }
}
