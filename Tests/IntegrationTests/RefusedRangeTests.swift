import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// Servers that give curl a file although they refuse ranges or disagree about validators (rows 1, 12, 27, 28,
/// 30, 31).
@Suite(.serialized, .timeLimit(.minutes(2)))
struct RefusedRangeTests {
    static let table: [Scenario] = [
        Scenario(27, .refusesRange(404), .always, .file, bound: 1.2),
        Scenario(27, .refusesRange(403), .always, .file, connections: 4, bound: 1.2),
        Scenario(27, .refusesRange(416), .always, .file, bound: 1.2),
        Scenario(27, .refusesRange(503), .always, .file, bound: 1.2),
        Scenario(27, .refusesRange(503, fields: [("Retry-After", "0")]), .always, .file, bound: 1.2),
        Scenario(27, .refusesRange(403), .resume, .restartedFile, bound: 1.2),
        Scenario(27, .refusesRange(404), .resume, .restartedFile, connections: 4),
        Scenario(27, .refusesRange(500), .resume, .restartedFile),
        Scenario(1, .closesOnRange, .always, .file, bound: 1.2),
        Scenario(1, .closesOnRange, .resume, .restartedFile),
        Scenario(12, .cutWithoutRanges(), .first(4), .file),
        Scenario(12, .cutWithoutRanges(after: 2_000_000), .first(4), .file, connections: 4),
        Scenario(12, .cutWithoutRanges(), .always, .failure([.transient])),
        Scenario(28, .weakETag, .resume, .resumedFile),
        Scenario(28, .unquotedETag, .resume, .resumedFile),
        Scenario(28, .unquotedETag, .resume, .resumedFile, connections: 4),
        Scenario(31, .tagOfEachConnection, .always, .file, connections: 4),
        Scenario(31, .tagOfEachConnectionBy206, .always, .file, connections: 4),
    ]

    @Test(arguments: table) func row(_ scenario: Scenario) async throws { try await scenario.play() }

    /// The first response is cut, and the rest is joined after a comparison: there is no ETag, the date is malformed,
    /// or the tag has no quotes.
    @Test(arguments: [Fault.dateWithOffset, .unquotedETag]) func aMalformedValidatorResumes(_ fault: Fault) async throws
    {
        let behaviour = Behaviour { context in
            let reply = fault.make(context)
            guard context.request.index == 0 else { return reply }
            return reply.body([.content(context.version.content, 0..<Scenario.held), .close])
        }
        try await Site.with(try await Site(behaviour)) { site in
            let outcome = try await site.download()
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted), "\(outcome.notices)")
            #expect(site.requests.count == 2)
        }
    }

    /// With a checksum, nodes that disagree about the ETag still share the file, over breaks, too.
    @Test(arguments: [Fault.tagOfEachConnection, .tagOfEachConnectionBy206], [1, 4])
    func aChecksumMakesTagsIrrelevant(_ fault: Fault, _ connections: Int) async throws {
        let behaviour = Behaviour { context in
            let reply = fault.make(context)
            guard context.request.index == 0 else { return reply }
            return reply.body([.content(context.version.content, 0..<Scenario.held), .close])
        }
        try await Site.with(try await Site(behaviour)) { site in
            let bytes = Version(seed: 1, length: site.length).content.bytes(in: 0..<site.length)
            let checksum = try #require(Checksum(algorithm: .crc32c, value: CRC32C.bigEndian(bytes)))
            let outcome = try await site.download {
                $0.checksum = checksum
                $0.connections = connections
            }
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted), "\(outcome.notices)")
        }
    }

    /// Each part in the middle is refused, with transient failures. The response to the plain request delivers the
    /// whole file and is not cut for another connection.
    @Test(arguments: [
        (Fault.refusesRange(500), 1), (.refusesRange(403), 1), (.closesOnRange, 1), (.refusesRange(500), 4),
    ])
    func partsAreRefusedInTheMiddle(_ fault: Fault, _ connections: Int) async throws {
        let behaviour = Behaviour { context in
            let range = context.request.field("Range")
            guard range == "bytes=0-" || range == nil else { return fault.make(context) }
            guard range != nil else { return context.correct }
            return context.correct.body([.content(context.version.content, 0..<Scenario.held), .close])
        }
        try await Site.with(try await Site(behaviour)) { site in
            try site.expectFile(
                try await site.download {
                    $0.connections = connections
                    $0.retryWait = .milliseconds(20)
                })
            #expect(site.requests.count <= 8 + 4 * connections, "\(site.requests.count)")
        }
    }

    /// A missing file is requested twice: with Range, and without.
    @Test func aMissingFileIsSaidAfterAPlainRequest() async throws {
        try await Site.with(try await Site(.always(.notFound))) { site in
            try site.expectFailure(try await site.download(), .notFound)
            #expect(site.requests.map { $0.info.field("Range") != nil } == [true, false])
        }
    }

    @Test func aSequentialDownloadAsksWithoutRange() async throws {
        for length in [1000, 3_000_000] as [Int64] {
            try await Site.with(try await Site(length: length)) { site in
                try site.expectFile(try await site.download { $0.isSequential = true })
                #expect(site.requests.map { $0.info.field("Range") } == [nil])
            }
        }
    }
}
