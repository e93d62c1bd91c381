import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// Catalogue A: answers to ranges (rows 12–27, 53).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct RangeFaultTests {
    static let starting: [Scenario] = [
        Scenario(12, .ignoresRange, .always, .file, bound: 1.2),
        Scenario(12, .ignoresRange, .always, .file, connections: 4, bound: 1.2),
        Scenario(12, .partWith200, .always, .file, bound: 1.2),
        Scenario(12, .partWith200, .always, .file, connections: 4, bound: 1.2, rate: 4_000_000),
        Scenario(14, .startsLater(), .always, .fileOr([.invalidResponse])),
        Scenario(14, .startsLater(), .first(1), .file),
        Scenario(15, .endsLater(), .always, .fileOr([.invalidResponse]), connections: 4),
        Scenario(15, .endsBeyondTotal, .always, .fileOr([.invalidResponse])),
        Scenario(16, .shorterRange(), .first(4), .file, bound: 1.2),
        Scenario(16, .shorterRange(100_000), .always, .file, bound: 1.8),
        Scenario(16, .shorterRange(100_000), .always, .file, connections: 4, bound: 2),
        Scenario(17, .noContentRange, .always, .fileOr([.invalidResponse])),
        Scenario(17, .noContentRange, .first(1), .file),
        Scenario(18, .garbageContentRange, .always, .fileOr([.invalidResponse])),
        Scenario(18, .otherUnit, .always, .fileOr([.invalidResponse])),
        Scenario(18, .negativeContentRange, .always, .fileOr([.invalidResponse])),
        Scenario(18, .backwardContentRange, .always, .fileOr([.invalidResponse])),
        Scenario(18, .overflowingContentRange, .always, .fileOr([.invalidResponse])),
        Scenario(20, .starTotal, .always, .file, bound: 1.2),
        Scenario(20, .starTotal, .always, .file, connections: 4),
        Scenario(22, .chunkedStartsLater(), .always, .fileOr([.invalidResponse])),
        Scenario(23, .multipart, .always, .fileOr([.invalidResponse])),
        Scenario(24, .unaskedPart, .always, .file),
        Scenario(27, .unsatisfiablePage, .first(1), .file),
        Scenario(27, .unsatisfiablePage, .always, .failure([.invalidResponse])),
        Scenario(53, .claimsRanges, .always, .file, bound: 1.2),
        Scenario(53, .deniesRanges, .always, .file, bound: 1.2),
        Scenario(53, .deniesRanges, .always, .file, connections: 4),
    ]

    static let resuming: [Scenario] = [
        Scenario(12, .ignoresRange, .resume, .restartedFile, bound: 2.2),
        Scenario(12, .ignoresRange, .resume, .restartedFile, connections: 4, bound: 2.2),
        Scenario(12, .ignoresRange, .firstOfResume(1), .resumedFile, bound: 1.6),
        Scenario(12, .partWith200, .resume, .resumedFile, bound: 0.7),
        Scenario(12, .partWith200, .resume, .resumedFile, connections: 4, bound: 0.7, rate: 4_000_000),
        Scenario(12, .unlabelledPartWith200, .resume, .restartedFile),
        Scenario(13, .ignoresRangeOfOtherContent(), .firstOfResume(1), .resumedFile),
        Scenario(14, .startsLater(), .firstOfResume(1), .resumedFile),
        Scenario(14, .startsLater(), .resume, .fileOr([.invalidResponse])),
        Scenario(14, .startsAtZero, .firstOfResume(1), .resumedFile),
        Scenario(14, .startsAtZero, .resume, .fileOr([.invalidResponse])),
        Scenario(14, .shiftedBytes(), .firstOfResume(1), .restartedFile),
        Scenario(14, .shiftedParts, .resume, .restartedFile),
        Scenario(15, .endsBeyondTotal, .firstOfResume(1), .resumedFile),
        Scenario(15, .endsBeyondTotal, .resume, .fileOr([.invalidResponse])),
        Scenario(16, .shorterRange(), .firstOfResume(4), .resumedFile, bound: 0.7),
        Scenario(17, .noContentRange, .firstOfResume(1), .resumedFile),
        Scenario(17, .noContentRange, .resume, .fileOr([.invalidResponse])),
        Scenario(18, .garbageContentRange, .firstOfResume(1), .resumedFile),
        Scenario(18, .garbageContentRange, .resume, .fileOr([.invalidResponse])),
        Scenario(18, .otherUnit, .resume, .fileOr([.invalidResponse])),
        Scenario(18, .negativeContentRange, .resume, .fileOr([.invalidResponse])),
        Scenario(18, .backwardContentRange, .resume, .fileOr([.invalidResponse])),
        Scenario(18, .overflowingContentRange, .resume, .fileOr([.invalidResponse])),
        Scenario(19, .otherTotal(), .firstOfResume(1), .resumedFile),
        Scenario(19, .otherTotal(-1000), .firstOfResume(1), .resumedFile),
        Scenario(20, .unknownTotal, .resume, .resumedFile, bound: 0.6),
        Scenario(21, .otherPart(), .firstOfResume(1), .resumedFile),
        Scenario(22, .chunkedStartsLater(), .firstOfResume(1), .resumedFile),
        Scenario(22, .chunkedStartsLater(), .resume, .fileOr([.invalidResponse])),
        Scenario(23, .multipart, .firstOfResume(1), .resumedFile),
        Scenario(23, .multipart, .resume, .fileOr([.invalidResponse])),
        Scenario(26, .unsatisfiable(total: 1_000_000), .firstOfResume(1), .resumedFile),
        Scenario(27, .unsatisfiablePage, .firstOfResume(1), .resumedFile),
        Scenario(27, .unsatisfiable(total: nil), .firstOfResume(1), .file),
        Scenario(53, .deniesRanges, .resume, .resumedFile, bound: 0.6),
    ]

    @Test(arguments: starting) func atTheStart(_ scenario: Scenario) async throws { try await scenario.play() }

    @Test(arguments: resuming) func onResume(_ scenario: Scenario) async throws { try await scenario.play() }

    /// Row 16: the first answer is a part, also if no range was requested.
    @Test(arguments: [true, false]) func row16FirstAnswerIsAPart(refusesRange: Bool) async throws {
        let fault = Fault.partOnly(1_000_000, refusesRange: refusesRange)
        try await Site.with(try await Site(.always(fault))) { site in
            let outcome = try await site.download()
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted) && site.served < 3_200_000)
        }
    }

    /// Rows 13, 21: another strong tag, with 200 or 206: no bytes are joined, and the complete new file is fetched.
    @Test(arguments: [false, true]) func rows13And32NewContentComesWhole(ignoresRange: Bool) async throws {
        try await Site.with(try await Site()) { site in
            let old = try #require(site.server.version(Site.path))
            try await site.interrupt(after: Scenario.held)
            let new = old.replaced(seed: 99)
            site.server.replace(Site.path, with: new)
            if ignoresRange { site.server.set(.always(.ignoresRange), for: Site.path) }
            let outcome = try await site.download { $0.connections = 4 }
            try site.expectFile(outcome, new)
            #expect(outcome.says(.restarted))
        }
    }

    /// Row 21: every 206 comes from another version, whatever `If-Range` says.
    @Test(arguments: [1, 4]) func row21OtherVersionBy206(connections: Int) async throws {
        let new = Version(seed: 99, length: 3_000_000)
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.partOf(new)), for: Site.path)
            try site.expectFile(try await site.download { $0.connections = connections }, new)
        }
    }

    /// Row 19: the complete length always differs under the same tag: no file can be right, so no file is published.
    @Test func row19OtherTotalForEver() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.otherTotal()), for: Site.path)
            let outcome = try await site.download()
            #expect(!outcome.succeeded)
            try site.law(outcome)
            try await site.expectRecovery()
        }
    }

    /// Row 25: after a kill between the last byte and the publication all bytes are written, and none is fetched again.
    @Test func row25EverythingHeldCostsNoByte() async throws {
        // Without a length the end is unknown when all bytes are held; a 416 then shows that the file ends there.
        try await Site.with(try await Site()) { site in
            let cut = Behaviour { context in
                let reply = Fault.unknownTotal.make(context)
                return context.asked.lowerBound == 0 ? reply.then(.stall) : reply
            }
            site.server.set(cut, for: Site.path)
            let download = Download(try site.options { $0.stallTimeout = .seconds(60) })
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes >= site.length }
            download.stop()
            let first = await outcome
            try site.law(first)
            // The server counts bytes after it has written them: a moment later than they arrive here.
            let length = site.length
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= length }
            let before = site.served
            site.server.set(.correct, for: Site.path)
            try site.expectFile(try await site.download())
            #expect(site.served - before <= 64 << 10)
        }
    }

    /// Row 26: the server's file is now shorter than the held bytes.
    @Test func row26FileBecameShorter() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            let new = Version(seed: 5, length: 1_200_000)
            site.server.replace(Site.path, with: new)
            let outcome = try await site.download()
            try site.expectFile(outcome, new)
            #expect(outcome.says(.restarted))
        }
    }

    /// Row 27: no byte of an error page is ever saved, even if the page is as long as the file.
    @Test(arguments: [416, 404, 500, 403, 429]) func row27PagesAreNeverSaved(_ status: Int) async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            let page = Fault("page") { context in
                let head = ReplyHead(
                    status,
                    [
                        ("Content-Type", "text/html"), ("Content-Length", "3000000"),
                        ("Content-Range", "bytes */3000000"), ("ETag", context.version.etag.field ?? ""),
                    ])
                return Reply([.head(head), .bytes([UInt8](repeating: 0x3C, count: 3_000_000))])
            }
            let first = site.requests.count
            site.server.set(.on([first], page), for: Site.path)
            let outcome = try await site.download()
            try site.law(outcome)
            if !outcome.succeeded { try await site.expectRecovery() }
        }
    }

    /// A resume asks for one range, from 16 KiB before the seam, with the strong tag byte for byte in `If-Range`.
    @Test func resumeAsksForOneRangeUnderIfRange() async throws {
        try await Site.with(try await Site()) { site in
            let first = try await site.interrupt(after: Scenario.held)
            try site.expectFile(try await site.download())
            let request = try #require(site.requests.dropFirst(first).first)
            #expect(request.info.field("Range") == "bytes=\(Scenario.held - 16_384)-2999999")
            #expect(request.info.field("If-Range") == "\"1-3000000\"")
            #expect(request.info.field("Accept-Encoding") == "identity")
            #expect(request.bodyBytes == site.length - Scenario.held + 16_384)
        }
    }
}

extension Fault {
    /// Correct heads, but every part that does not begin at zero is shifted by one byte.
    static let shiftedParts = Fault("shiftedParts") { context in
        context.asked.lowerBound > 0 ? shiftedBytes(by: 1).make(context) : context.correct
    }

    /// `*` for the complete length of every range that exists.
    static let starTotal = Fault("starTotal") { context in
        context.correct.status == 206 ? unknownTotal.make(context) : context.correct
    }
}
