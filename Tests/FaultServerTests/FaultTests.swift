import FaultServer
import Testing

@Suite struct FaultTests {
    private static let range = ["Range: bytes=1000-9999"]

    private func answer(
        _ fault: Fault, length: Int64 = 100_000, _ fields: [String] = range, silence: Double = 60
    ) async throws -> Received {
        try await withFile(length: length, .always(fault)) {
            await RawClient.get($0, "/file", fields, silence: silence, limit: 1 << 22)
        }
    }

    @Test func connectionsEndBeforeAByte() async throws {
        #expect(try await answer(.closeBeforeHead).ending == .closed)
        #expect(try await answer(.resetBeforeHead).ending == .reset)
        #expect(try await answer(.stallBeforeHead, silence: 0.2).ending == .silent)
        #expect(try await answer(.closeBeforeHead).bytes == [])
    }

    @Test func bodiesBreakOff() async throws {
        let short = try await answer(.shortBody(after: 100))
        #expect(short.ending == .closed)
        #expect(short.field("Content-Length") == "9000")
        #expect(short.isContent(1000..<1100))

        let half = try await answer(.shortBody())
        #expect(half.isContent(1000..<5500))

        #expect(try await answer(.resetAfter(100)).ending == .reset)
        #expect(try await answer(.resetAfterHead).ending == .reset)

        let stalled = try await answer(.stall(after: 100), silence: 2)
        #expect(stalled.ending == .silent)
        #expect(stalled.isContent(1000..<1100))
    }

    @Test func framingIsBroken() async throws {
        let surplus = try await answer(.surplus(10))
        #expect(surplus.field("Content-Length") == "9000")
        #expect(surplus.body.count == 9010)

        let chunked = try await answer(.chunked(size: 4096))
        #expect(chunked.field("Content-Length") == nil)
        #expect(chunked.body.starts(with: Array("1000\r\n".utf8)))
        #expect(chunked.body.suffix(7) == Array("\r\n0\r\n\r\n".utf8))
        #expect(try await answer(.noLastChunk).body.suffix(5) != Array("0\r\n\r\n".utf8)[...])
        #expect(try await answer(.bothLengths).field("Content-Length") == "4500")
        #expect(try await answer(.repeatedContentLength).field("Content-Length") == "9000, 9000")
        #expect(try await answer(.overflowingContentLength).field("Content-Length") == "18446744073709551616")

        let bare = try await answer(.closeDelimited)
        #expect(bare.field("Content-Length") == nil)
        #expect(bare.isContent(1000..<10_000))
        #expect(try await answer(.cutCloseDelimited(after: 7)).isContent(1000..<1007))
    }

    @Test func rangesAreWrong() async throws {
        let ignored = try await answer(.ignoresRange)
        #expect(ignored.status == 200)
        #expect(ignored.isContent(0..<100_000))

        let later = try await answer(.startsLater(by: 512))
        #expect(later.field("Content-Range") == "bytes 1512-9999/100000")
        #expect(later.isContent(1512..<10_000))

        let shifted = try await answer(.shiftedBytes(by: 512))
        #expect(shifted.field("Content-Range") == "bytes 1000-9999/100000")
        #expect(shifted.isContent(1512..<10_512))

        #expect(try await answer(.endsLater(by: 5)).isContent(1000..<10_005))
        #expect(try await answer(.shorterRange(10)).field("Content-Range") == "bytes 1000-1009/100000")
        #expect(try await answer(.noContentRange).field("Content-Range") == nil)
        #expect(try await answer(.otherTotal(1)).field("Content-Range") == "bytes 1000-9999/100001")
        #expect(try await answer(.unknownTotal).field("Content-Range") == "bytes 1000-9999/*")
        #expect(try await answer(.unaskedPart, []).status == 206)
        #expect(try await answer(.unsatisfiable(total: 5)).field("Content-Range") == "bytes */5")

        let multipart = try await answer(.multipart)
        #expect(multipart.field("Content-Length") == String(multipart.body.count))
        #expect(multipart.field("Content-Range") == nil)
    }

    @Test func representationsAreMixedUp() async throws {
        let ifRange = Self.range + ["If-Range: \"1-100000\""]
        let other = try await answer(.otherContent(), ifRange)
        #expect(other.status == 200)
        #expect(other.isContent(0..<100_000, seed: 99))
        let part = try await answer(.otherPart(), ifRange)
        #expect(part.status == 206)
        #expect(part.isContent(1000..<10_000, seed: 99))
        #expect(part.field("ETag") == "\"99-100000\"")
        let same = try await answer(.sameETagOtherBytes(), ifRange)
        #expect(same.status == 206)
        #expect(same.field("ETag") == "\"1-100000\"")
        #expect(same.isContent(1000..<10_000, seed: 99))
        #expect(try await answer(.weakETag).field("ETag") == "W/\"1-100000\"")
        #expect(try await answer(.noValidator).field("Last-Modified") == nil)
        let dated = try await answer(.lastModifiedIsDate)
        #expect(dated.field("Date") == dated.field("Last-Modified"))
        #expect(dated.field("Date") != nil)

        let flipped = try await answer(.corruptByte(at: 1003))
        #expect(FaultContent(seed: 1).firstMismatch(in: flipped.body, at: 1000) == 1003)
        #expect(FaultContent(seed: 1).firstMismatch(in: Array(flipped.body[4...]), at: 1004) == nil)
    }

    @Test func statusesAndFields() async throws {
        let later = try await answer(.retryAfter("2"))
        #expect(later.status == 429)
        #expect(later.field("Retry-After") == "2")
        #expect(try await answer(.redirect(to: "javascript:alert(1)")).field("Location") == "javascript:alert(1)")
        #expect(try await answer(.redirectChain(hops: 3)).field("Location") == "/file?hop=1")
        #expect(try await answer(.authorizationRequired("Basic eA==")).status == 401)
        #expect(try await answer(.authorizationRequired("Basic eA=="), ["Authorization: Basic eA=="]).status == 200)
        #expect(try await answer(.cookieRequired("id=1"), ["Cookie: a=b; id=1"]).status == 200)
        let wall = Fault.cookieWall("seen=yes; Path=/")
        #expect(try await answer(wall).field("Location") == "/file")
        #expect(try await answer(wall).field("Set-Cookie") == "seen=yes; Path=/")
        #expect(try await answer(wall, ["Cookie: a=b; seen=yes"]).status == 200)
        let digest = Fault.digestRequired(user: "me")
        #expect(try await answer(digest, ["Authorization: Basic eA=="]).status == 401)
        let reply = "Authorization: Digest username=\"me\", nonce=\"n1\", uri=\"/file\""
        #expect(try await answer(digest, [reply]).status == 200)
        #expect(try await answer(.garbageStatusLine).head.hasPrefix("HTTP/7.x OK maybe"))
        let name = "attachment; filename=\"../x\""
        #expect(try await answer(.contentDisposition(name)).field("Content-Disposition") == name)
    }

    @Test func floodsDoNotEnd() async throws {
        for fault in [Fault.endlessHead, .endlessFieldLine, .endlessInterim, .hugeHead()] {
            let received = try await answer(fault)
            #expect(received.ending == .enough, "\(fault.name)")
        }
    }

    @Test func behavioursChooseTheRequests() async throws {
        try await withFile(length: 1000, .script([.unavailable, nil, .notFound])) { server in
            for status in [503, 200, 404, 200] {
                #expect(await RawClient.get(server).status == status)
            }
            server.set(.onResume(.forbidden), for: "/file")
            #expect(await RawClient.get(server, "/file", ["Range: bytes=0-"]).status == 206)
            #expect(await RawClient.get(server, "/file", ["Range: bytes=1-"]).status == 403)
            server.set(.first(5, .gone), for: "/file")
            #expect(await RawClient.get(server).status == 200)
        }
    }

    @Test(arguments: Fault.all.keys.sorted()) func everyNamedFaultLetsTheServerStop(name: String) async throws {
        let fault = try #require(Fault.all[name])
        let received = try await answer(fault, silence: 0.2)
        #expect(received.ending != .refused)
        // These faults have an effect only over HTTP/2, with several concurrent requests, or without a range.
        let hidden: Set = ["connectionLimit", "connectionLimitByReset", "goAway", "resetStream", "unaskedPart"]
        let isCorrect = received.bytes == (try await answerOfCorrectServer()).bytes
        #expect(!isCorrect || hidden.contains(name))
    }

    private func answerOfCorrectServer() async throws -> Received {
        try await withFile { await RawClient.get($0, "/file", Self.range) }
    }
}
