import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// Catalogue A: faults of a connection, a head or a body (rows 1–11, 43–47, 50, 51).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ConnectionFaultTests {
    static let passing: [Scenario] = [
        Scenario(1, .closeBeforeHead, .first(2), .file, bound: 1.2),
        Scenario(1, .resetBeforeHead, .first(2), .file, bound: 1.2),
        Scenario(1, .closeBeforeHead, .firstOfResume(2), .resumedFile, bound: 0.6),
        Scenario(2, .resetAfterHead, .first(2), .file),
        Scenario(2, .resetAfter(700_000), .first(3), .file),
        Scenario(2, .resetAfter(700_000), .first(3), .file, connections: 4),
        Scenario(2, .resetAfterHead, .firstOfResume(2), .resumedFile, bound: 0.6),
        Scenario(3, .shortBody(), .first(3), .file, bound: 1.2),
        Scenario(3, .shortBody(), .first(6), .file, connections: 4, bound: 1.6),
        Scenario(3, .shortBody(after: 0), .first(2), .file, bound: 1.2),
        Scenario(3, .shortBody(), .firstOfResume(3), .resumedFile, bound: 0.7),
        Scenario(4, .stall(), .first(1), .file, bound: 1.2),
        Scenario(4, .stallBeforeHead, .first(1), .file, bound: 1.2),
        Scenario(4, .stallAfterHead, .firstOfResume(1), .resumedFile, bound: 0.6),
        Scenario(5, .surplus(), .always, .file, bound: 1.2),
        Scenario(5, .surplus(100_000), .always, .file, connections: 4),
        Scenario(5, .surplus(), .resume, .resumedFile, bound: 0.7),
        Scenario(6, .noLastChunk, .first(2), .file),
        Scenario(6, .cutChunked(), .first(3), .file, bound: 1.2),
        Scenario(6, .cutChunked(), .firstOfResume(2), .resumedFile, bound: 0.7),
        Scenario(6, .chunked(), .always, .file, bound: 1.2),
        Scenario(7, .negativeChunkSize, .first(1), .file),
        Scenario(7, .overflowingChunkSize, .first(1), .file),
        Scenario(7, .garbageChunkSize, .first(1), .file),
        Scenario(7, .hugeChunkExtension, .first(1), .file),
        Scenario(9, .repeatedContentLength, .always, .fileOr([.invalidResponse, .transient])),
        Scenario(10, .closeDelimitedWhole, .always, .file, says: .unverified, bound: 1.2),
        Scenario(11, .cutCloseDelimited(), .first(3), .file, bound: 1.3),
        Scenario(11, .cutCloseDelimited(), .firstOfResume(3), .resumedFile, bound: 0.8),
        Scenario(47, .interim(5), .always, .file, bound: 1.2),
        Scenario(51, .garbageStatusLine, .first(1), .file, bound: 1.2),
        Scenario(51, .status999, .firstOfResume(1), .fileOr([.invalidResponse])),
    ]

    static let framing: [Scenario] = [
        Scenario(5, .strayBytes("\r\n"), .resume, .resumedFile),
        Scenario(8, .bothLengths, .always, .file),
        Scenario(8, .bothLengths, .resume, .resumedFile),
        Scenario(8, .bothLengths, .resume, .resumedFile, connections: 4),
        Scenario(8, .chunkedAs("chunked, chunked"), .always, .file),
        Scenario(8, .chunkedAs("identity, Chunked"), .resume, .resumedFile),
        Scenario(8, .chunkedAs("chunked\r\nTransfer-Encoding: chunked"), .resume, .resumedFile),
        Scenario(51, .headLine("PHP Warning: no such file in Unknown"), .resume, .resumedFile),
        Scenario(51, .headLine("Content-Length : 7\r\nX Y: 1\r\n Content-Length: 5"), .always, .file),
        Scenario(51, .headLine("Content-Range : bytes 5-6/7\r\nContent Length: 7"), .resume, .resumedFile),
        Scenario(51, .headLine("X-Folded: a\r\n  b\r\n\tc"), .resume, .resumedFile, connections: 4),
        Scenario(51, .headLine((0..<1000).map { "X-\($0): y" }.joined(separator: "\r\n")), .resume, .resumedFile),
        Scenario(46, .hugeHead(length: 290_000), .always, .file),
    ]

    static let failing: [Scenario] = [
        Scenario(1, .closeBeforeHead, .always, .failure([.transient])),
        Scenario(1, .resetBeforeHead, .resume, .failure([.transient])),
        Scenario(2, .resetAfterHead, .always, .failure([.transient])),
        Scenario(3, .shortBody(after: 0), .always, .failure([.transient])),
        Scenario(3, .shortBody(after: 0), .resume, .failure([.transient])),
        Scenario(6, .cutChunked(after: 0), .resume, .failure([.transient])),
        Scenario(7, .negativeChunkSize, .always, .failure([.invalidResponse, .transient])),
        Scenario(7, .overflowingChunkSize, .always, .failure([.invalidResponse, .transient])),
        Scenario(7, .garbageChunkSize, .resume, .failure([.invalidResponse, .transient])),
        Scenario(7, .hugeChunkExtension, .always, .failure([.invalidResponse, .transient])),
        Scenario(9, .differingContentLengths, .always, .failure([.invalidResponse])),
        Scenario(9, .negativeContentLength, .always, .failure([.invalidResponse])),
        Scenario(9, .overflowingContentLength, .always, .failure([.invalidResponse])),
        Scenario(9, .differingContentLengths, .resume, .failure([.invalidResponse])),
        Scenario(11, .cutCloseDelimited(after: 0), .resume, .failure([.transient])),
        Scenario(46, .endlessHead, .always, .failure([.invalidResponse])),
        Scenario(46, .endlessFieldLine, .always, .failure([.invalidResponse])),
        Scenario(46, .hugeHead(), .always, .failure([.invalidResponse])),
        Scenario(46, .endlessHead, .resume, .failure([.invalidResponse])),
        Scenario(47, .endlessInterim, .always, .failure([.invalidResponse])),
        Scenario(51, .http09, .always, .failure([.invalidResponse])),
        Scenario(51, .garbageStatusLine, .always, .failure([.invalidResponse])),
        Scenario(51, .status999, .always, .failure([.invalidResponse])),
        Scenario(51, .status999, .resume, .failure([.invalidResponse])),
    ]

    @Test(arguments: passing) func faultThatPasses(_ scenario: Scenario) async throws { try await scenario.play() }

    @Test(arguments: framing) func headThatIsRead(_ scenario: Scenario) async throws { try await scenario.play() }

    @Test(arguments: failing) func faultThatStays(_ scenario: Scenario) async throws { try await scenario.play() }

    /// Row 4: the stall timeout restarts with each byte, as the catalogue requires.
    @Test func row4SilenceShorterThanTheStallTimeoutIsNoFault() async throws {
        try await Site.with(try await Site(.first(1, .pause(.milliseconds(400))))) { site in
            try site.expectFile(try await site.download { $0.stallTimeout = .seconds(20) })
            #expect(site.requests.count == 1)
        }
    }

    /// Row 5: bytes after the length that look like the next response are never taken for the file.
    @Test func row5SurplusIsNoResponse() async throws {
        try await Site.with(try await Site(.first(1, .unaskedSurplus))) { site in
            try site.expectFile(try await site.download())
            #expect(site.requests.count <= 5)
        }
    }

    /// Row 9: `--ignore-length` reads until the connection closes, whatever Content-Length says.
    @Test(arguments: ["5", "9%", "6, 7", "-1"]) func row9AWrongLengthIsIgnored(_ length: String) async throws {
        try await Site.with(try await Site(.always(.contentLength(length)))) { site in
            let outcome = try await site.download {
                $0.connection.ignoresLength = true
                $0.connections = 8
            }
            try site.expectFile(outcome)
            #expect(
                outcome.notices.contains { $0.kind == .unverified && $0.message.contains("Content-Length is ignored") })
            #expect(site.requests.count == 1)
        }
    }

    /// Row 9: bytes that an earlier run received under a wrong length are not joined to others.
    @Test func row9AWrongLengthOfAnEarlierRunIsForgotten() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.contentLength("9%")), for: Site.path)
            try site.expectFile(try await site.download { $0.connection.ignoresLength = true })
            #expect(site.requests.count == 2)
        }
    }

    /// Row 11: after a length was known once, a body delimited only by the end of the connection is incomplete before
    /// it.
    @Test func row11LengthOnceKnownHoldsForACloseDelimitedAnswer() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.cutWholeCloseDelimited), for: Site.path)
            try site.expectFailure(
                try await site.download(), .transient, .invalidResponse, .lengthUnproven)
            try await site.expectRecovery()
        }
    }

    /// Row 43: a server that allows k connections is soon asked for no more, and every byte arrives.
    @Test(arguments: [1, 2, 3]) func row43TooManyConnectionsByStatus(_ limit: Int) async throws {
        try await tooMany(.connectionLimit(limit), limit)
    }

    @Test(arguments: [1, 2]) func row43TooManyConnectionsByReset(_ limit: Int) async throws {
        try await tooMany(.connectionLimitByReset(limit), limit)
    }

    /// Row 43: the server notices late that a connection was closed, and still counts it. The download does not
    /// conclude that the server allows fewer connections.
    @Test func row43ClosedConnectionsAreNoticedLate() async throws {
        var resource = Resource(length: 12_000_000, rate: 1_000_000, behaviour: .always(.connectionLimit(3)))
        resource.lateEnd = .seconds(1)
        try await Site.with(try await Site(resource)) { site in
            let outcome = try await site.download { $0.connections = 8 }
            try site.expectFile(outcome)
            let lowered = outcome.notices.filter { $0.kind == .limited }.map(\.message)
            #expect(!lowered.contains { $0.contains("with 1 connection ") }, "\(lowered)")
            #expect(lowered.count <= 2, "\(lowered)")
        }
    }

    private func tooMany(_ fault: Fault, _ limit: Int) async throws {
        let resource = Resource(length: 6_000_000, rate: 2_000_000, behaviour: .always(fault))
        try await Site.with(try await Site(resource)) { site in
            let outcome = try await site.download { $0.connections = 8 }
            try site.expectFile(outcome)
            let refused = site.requests.count { $0.status != 206 }
            #expect(refused <= 8 + 3, "\(refused) requests were refused")
            #expect(Double(site.served) <= 1.3 * Double(site.length))
        }
    }

    /// Row 44: a head that arrives byte by byte ends with the head's deadline, however long the user would wait.
    @Test func row44SlowHead() async throws {
        try await Site.with(try await Site(.first(1, .slowHead(bytesPerSecond: 10)))) { site in
            let clock = ContinuousClock()
            let start = clock.now
            let outcome = try await site.download {
                $0.connection.headTimeout = .seconds(1)
                $0.stallTimeout = .seconds(60)
            }
            try site.expectFile(outcome)
            #expect(clock.now - start < .seconds(20))
            #expect(site.requests.count == 2)
        }
    }

    /// Row 45: one very slow connection beside normal ones is replaced, and another takes over its segment.
    @Test func row45CrawlingConnectionAmongOthers() async throws {
        let crawling = Behaviour { context in
            let steps = context.correct.steps
            guard context.request.index == 1 else { return context.correct }
            return Reply(steps.prefix(1) + [.rate(1000)] + steps.dropFirst())
        }
        let resource = Resource(length: 24_000_000, rate: 1_000_000, behaviour: crawling)
        try await Site.with(try await Site(resource)) { site in
            let clock = ContinuousClock()
            let start = clock.now
            try site.expectFile(try await site.download { $0.connections = 4 })
            #expect(clock.now - start < .seconds(60))
        }
    }

    /// Row 46: a flood of head bytes is not collected.
    @Test func row46FloodIsCutEarly() async throws {
        try await Site.with(try await Site(.always(.endlessHead))) { site in
            let before = ProcessMemory.residentBytes
            try site.expectFailure(try await site.download(), .invalidResponse)
            #expect(ProcessMemory.residentBytes - before < 256 << 20)
            #expect(site.requests.count == 1)
        }
    }

    // MARK: HTTP/2

    static let streams: [Scenario] = [
        Scenario(50, .resetStream(every: 65_536), .always, .file),
        Scenario(50, .resetStream(every: 300_000), .always, .file, connections: 4),
        Scenario(50, .refusedStream, .first(2), .file),
        Scenario(50, .goAway(), .first(2), .file),
        Scenario(50, .goAwayAtOnce, .first(2), .file),
        Scenario(50, .shortBody(), .first(3), .file),
        Scenario(50, .stall(), .first(1), .file),
    ]

    @Test(arguments: streams) func row50HTTP2(_ scenario: Scenario) async throws {
        var options = ServerOptions()
        options.http2 = true
        let behaviour: Behaviour
        if case .first(let count) = scenario.moment {
            behaviour = .first(count, scenario.fault)
        } else {
            behaviour = .always(scenario.fault)
        }
        let resource = Resource(length: 3_000_000, behaviour: behaviour)
        try await Site.with(try await Site(resource, options: options)) { site in
            let outcome = try await site.download {
                $0.connection.httpProtocol = .http2PriorKnowledge
                $0.connections = scenario.connections
            }
            try site.expectFile(outcome)
            #expect(site.requests.allSatisfy { $0.info.isHTTP2 })
            #expect(Double(site.served) <= 4 * Double(site.length))
        }
    }
}

extension Fault {
    /// More bytes than the length, on a body that ends early by our own choice: the surplus is not a response.
    static let unaskedSurplus = Fault("unaskedSurplus") { context in
        let reply = context.correct.body([.content(context.version.content, context.asked.lowerBound..<1_000_000)])
        return reply.head {
            $0.set("Content-Length", "1000000")
            $0.set("Content-Range", "bytes \(context.asked.lowerBound)-999999/\(context.version.length)")
        }.then(.bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad".utf8)))
    }

    /// 200 under the same validators, without a length, with half the bytes and an orderly end.
    static let cutWholeCloseDelimited = Fault("cutWholeCloseDelimited") { context in
        ignoresRange.make(context).head { $0.remove("Content-Length") }
            .body([.content(context.version.content, 0..<context.version.length / 2), .close])
    }
}
