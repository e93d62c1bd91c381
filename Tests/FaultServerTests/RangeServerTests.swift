import FaultServer
import Testing

@Suite struct RangeServerTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var fields: [String]
        var status: Int
        var range: Range<Int64> = 0..<0
        var contentRange: String?
        var testDescription: String { fields.joined(separator: ", ") }
    }

    static let date = "Tue, 14 Nov 2023 22:13:20 GMT"
    static let part = Case(fields: [], status: 206, range: 10..<20, contentRange: "bytes 10-19/1000")
    static let whole = Case(fields: [], status: 200, range: 0..<1000)

    static func asked(_ fields: String..., gives outcome: Case) -> Case {
        var outcome = outcome
        outcome.fields = fields
        return outcome
    }

    static let cases = [
        asked(gives: whole),
        asked("Range: bytes=10-19", gives: part),
        Case(fields: ["Range: bytes=990-"], status: 206, range: 990..<1000, contentRange: "bytes 990-999/1000"),
        Case(fields: ["Range: bytes=-10"], status: 206, range: 990..<1000, contentRange: "bytes 990-999/1000"),
        Case(fields: ["Range: bytes=-9999"], status: 206, range: 0..<1000, contentRange: "bytes 0-999/1000"),
        Case(fields: ["Range: bytes=990-9999"], status: 206, range: 990..<1000, contentRange: "bytes 990-999/1000"),
        Case(fields: ["Range: bytes=1000-"], status: 416, contentRange: "bytes */1000"),
        Case(fields: ["Range: bytes=-0"], status: 416, contentRange: "bytes */1000"),
        asked("Range: bytes=19-10", gives: whole),
        asked("Range: lines=1-2", gives: whole),
        asked("Range: bytes=0-1,5-6", gives: whole),
        asked("Range: bytes=10-19", "If-Range: \"1-1000\"", gives: part),
        asked("Range: bytes=10-19", "If-Range: \"other\"", gives: whole),
        asked("Range: bytes=10-19", "If-Range: W/\"1-1000\"", gives: whole),
        asked("Range: bytes=10-19", "If-Range: \(date)", gives: part),
        asked("Range: bytes=10-19", "If-Range: Tue, 14 Nov 2023 22:13:21 GMT", gives: whole),
        asked("Range: bytes=10-19", "If-Match: \"x\", \"1-1000\"", gives: part),
        asked("Range: bytes=10-19", "If-Match: *", gives: part),
        Case(fields: ["Range: bytes=10-19", "If-Match: \"x\""], status: 412),
        Case(fields: ["If-None-Match: W/\"1-1000\""], status: 304),
        Case(fields: ["If-Modified-Since: \(date)"], status: 304),
        asked("If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT", gives: whole),
        asked("If-None-Match: \"other\"", "If-Modified-Since: \(date)", gives: whole),
    ]

    @Test(arguments: cases) func answers(_ expected: Case) async throws {
        try await withFile(length: 1000) { server in
            let received = await RawClient.get(server, "/file", expected.fields)
            #expect(received.status == expected.status)
            #expect(received.field("Content-Range") == expected.contentRange)
            #expect(received.isContent(expected.range))
            #expect(received.ending == .closed)
            guard expected.status < 300 else { return }
            #expect(received.field("Content-Length") == String(expected.range.count))
            #expect(received.field("ETag") == "\"1-1000\"")
            #expect(received.field("Last-Modified") == RangeServerTests.date)
            #expect(received.field("Accept-Ranges") == "bytes")
            #expect(server.log.bodyBytesServed("/file") == Int64(expected.range.count))
        }
    }

    @Test func aWeakTagNeverMatchesIfRange() async throws {
        let version = Version(length: 1000, etag: .weak("1-1000"))
        try await withServer(["/file": Resource(version)]) { server in
            let fields = ["Range: bytes=10-19", "If-Range: W/\"1-1000\""]
            #expect(await RawClient.get(server, "/file", fields).status == 200)
            #expect(await RawClient.get(server, "/file", ["Range: bytes=10-19"]).status == 206)
        }
    }

    @Test func oneConnectionServesSeveralRequestsAndHeadHasNoBody() async throws {
        try await withFile(length: 1000) { server in
            let text =
                "HEAD /file HTTP/1.1\r\n\r\nGET /file HTTP/1.1\r\nRange: bytes=5-9\r\n\r\n"
                + "GET /none HTTP/1.1\r\nConnection: close\r\n\r\n"
            let received = await RawClient.exchange(port: server.port, text)
            let answers = String(decoding: received.bytes, as: UTF8.self)
            #expect(answers.components("HTTP/1.1 ").map { $0.prefix(3) } == ["", "200", "206", "404"])
            #expect(received.bytes.count < 1000)
            await server.log.wait { $0.openConnections == 0 }
            #expect(server.log.connections.count == 1)
            #expect(server.log.requests.map(\.status) == [200, 206, 404])
            #expect(server.log.requests.map(\.bodyBytes) == [0, 5, 19])
            #expect(server.log.requests("/file").map(\.info.index) == [0, 1])
            #expect(server.log.requests[1].info.field("range") == "bytes=5-9")
        }
    }

    @Test(arguments: [0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) + 1, 1 << 41] as [Int64])
    func filesOfAnyLength(length: Int64) async throws {
        try await withFile(length: length) { server in
            let received = await RawClient.get(server, "/file", ["Range: bytes=-5"])
            let start = max(0, length - 5)
            #expect(received.status == (length == 0 ? 416 : 206))
            #expect(
                received.field("Content-Range")
                    == (length == 0 ? "bytes */0" : "bytes \(start)-\(length - 1)/\(length)"))
            #expect(received.isContent(start..<length))
        }
    }

    @Test func curlGetsTheRightFile() async throws {
        try await withFile(length: 20_000_001) { server in
            try await withDirectory { directory in
                let path = directory + "/file"
                #expect(await shell("curl -sS -m 60 -o \(path) \(server.url("/file"))").status == 0)
                let mismatch = try FaultContent(seed: 1).firstMismatch(inFile: path, length: 20_000_001)
                #expect(mismatch == nil)
                await server.log.allEnded()
                #expect(server.log.bodyBytesServed("/file") == 20_000_001)
            }
        }
    }

    @Test func aPathThatEndsInAStarStandsForMany() async throws {
        try await withServer(["/many/*": Resource(length: 10), "/many/long": Resource(length: 20)]) { server in
            #expect(await RawClient.get(server, "/many/7").isContent(0..<10))
            #expect(await RawClient.get(server, "/many/long?x").isContent(0..<20))
            #expect(await RawClient.get(server, "/other").status == 404)
        }
    }
}

extension String {
    func components(_ separator: String) -> [Substring] {
        split(separator: separator, omittingEmptySubsequences: false)
    }
}
