import FaultServer
import Testing
import TowlineCore

/// Scenarios of the fault catalogue over `URLSessionTransport`. The same bytes arrive as over libcurl, or the download
/// fails with the documented error.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ScenarioTests {
    static let connections: [Scenario] = [
        Scenario(1, .closeBeforeHead, .first(2), .file),
        Scenario(1, .resetBeforeHead, .first(2), .file),
        Scenario(1, .closeBeforeHead, .always, .failure([.transient])),
        Scenario(2, .resetAfterHead, .first(2), .file),
        Scenario(2, .resetAfter(700_000), .first(3), .file),
        Scenario(2, .resetAfter(700_000), .first(3), .file, connections: 4),
        Scenario(2, .resetAfterHead, .firstOfResume(2), .resumedFile),
        Scenario(3, .shortBody(), .first(3), .file),
        Scenario(3, .shortBody(), .firstOfResume(3), .resumedFile),
        Scenario(3, .shortBody(after: 0), .always, .failure([.transient])),
        Scenario(4, .stall(), .first(1), .file),
        Scenario(4, .stallBeforeHead, .first(1), .file),
        Scenario(5, .surplus(), .always, .file),
        Scenario(6, .noLastChunk, .first(2), .file),
        Scenario(6, .cutChunked(), .first(3), .file),
        Scenario(7, .garbageChunkSize, .resume, .failure([.invalidResponse, .transient])),
        Scenario(9, .differingContentLengths, .always, .failure([.invalidResponse])),
        Scenario(9, .negativeContentLength, .always, .failure([.invalidResponse])),
        Scenario(10, .closeDelimitedWhole, .always, .file, says: .unverified),
        Scenario(11, .cutCloseDelimited(), .firstOfResume(3), .resumedFile),
        Scenario(47, .interim(5), .always, .file),
        Scenario(51, .garbageStatusLine, .always, .failure([.invalidResponse])),
        Scenario(51, .http09, .always, .failure([.invalidResponse])),
    ]

    static let responses: [Scenario] = [
        Scenario(12, .ignoresRange, .always, .file, connections: 4),
        Scenario(12, .ignoresRange, .resume, .restartedFile),
        Scenario(12, .partWith200, .resume, .resumedFile),
        Scenario(14, .startsLater(), .first(1), .file),
        Scenario(14, .startsAtZero, .resume, .fileOr([.invalidResponse])),
        Scenario(16, .shorterRange(), .first(4), .file),
        Scenario(17, .noContentRange, .resume, .fileOr([.invalidResponse])),
        Scenario(19, .otherTotal(), .firstOfResume(1), .resumedFile),
        Scenario(20, .unknownTotal, .resume, .resumedFile),
        Scenario(21, .otherPart(), .firstOfResume(1), .resumedFile),
        Scenario(23, .multipart, .firstOfResume(1), .resumedFile),
        Scenario(27, .unsatisfiablePage, .always, .failure([.invalidResponse])),
        Scenario(35, .codedPart, .firstOfResume(1), .resumedFile),
        Scenario(36, .page, .firstOfResume(1), .resumedFile),
        Scenario(36, .noContent, .always, .failure([.invalidResponse])),
        Scenario(38, .retryAfter("0"), .first(2), .file),
        Scenario(39, .unavailable, .first(4), .file),
        Scenario(42, .notFound, .always, .failure([.notFound])),
        Scenario(48, .redirectLoop, .always, .failure([.redirectRefused])),
        Scenario(48, .redirectNowhere, .always, .failure([.redirectRefused])),
        Scenario(54, .wrongReprDigest, .always, .failure([.checksumMismatch])),
    ]

    @Test(arguments: connections) func faultOfTheConnection(_ scenario: Scenario) async throws {
        try await scenario.play()
    }

    @Test(arguments: responses) func faultOfTheResponse(_ scenario: Scenario) async throws { try await scenario.play() }

    @Test func severalConnections() async throws {
        try await Site.with(try await Site(Resource(length: 8_000_000, rate: 4_000_000))) { site in
            try site.expectFile(try await site.download { $0.connections = 4 })
            #expect(site.requests.count >= 4)
        }
    }

    /// The receiver is slower than the network: the download continues with the next request, and memory is bounded.
    @Test func aRateLimitNeedsFurtherRequests() async throws {
        try await Site.with(try await Site(length: 60_000_000)) { site in
            try site.expectFile(try await site.download { $0.rateLimit = 20_000_000 })
            #expect(site.requests.count > 1)
        }
    }
}
