import FaultServer
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

/// Catalogue A: validators, digests, and responses that are not the file (rows 28–37, 49, 54, 55).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct RepresentationFaultTests {
    static let table: [Scenario] = [
        Scenario(30, .lastModified(secondsBeforeDate: 100), .resume, .fileOr([.transient])),
        Scenario(35, .codedPart, .firstOfResume(1), .resumedFile),
        Scenario(35, .fields([("Content-Encoding", "aws-chunked")]), .always, .file, says: .singleStream, bound: 1.2),
        Scenario(35, .fields([("Content-Encoding", "utf-8")]), .resume, .resumedFile, bound: 0.6),
        Scenario(
            35, .fields([("Content-Encoding", "none")]), .resume, .resumedFile, connections: 4, bound: 0.8,
            rate: 4_000_000),
        Scenario(36, .page, .firstOfResume(1), .resumedFile, bound: 0.6),
        Scenario(36, .pageWithETag, .firstOfResume(1), .resumedFile, bound: 0.6),
        Scenario(36, .page, .resume, .failure([.transient])),
        Scenario(36, .page, .firstOfResume(2), .resumedFile, connections: 4),
        Scenario(36, .noContent, .firstOfResume(1), .fileOr([.invalidResponse])),
        Scenario(36, .unaskedNotModified, .firstOfResume(1), .fileOr([.invalidResponse])),
        Scenario(36, .noContent, .always, .failure([.invalidResponse])),
        Scenario(36, .unaskedNotModified, .always, .failure([.invalidResponse])),
        Scenario(54, .wrongReprDigest, .always, .failure([.checksumMismatch])),
    ]

    @Test(arguments: table) func row(_ scenario: Scenario) async throws { try await scenario.play() }

    /// The validators with which a server names its version.
    enum Naming: String, CaseIterable, Sendable {
        case strong, weak, strongDate, weakDate, undated, nothing

        func version(seed: UInt64 = 1, length: Int64 = 3_000_000) -> Version {
            var version = Version(seed: seed, length: length)
            switch self {
            case .strong: break
            case .weak: version.etag = .weak("w\(seed)")
            case .strongDate, .weakDate, .undated:
                version.etag = .absent
                version.lastModified = 1_700_000_000 + Int64(seed)
                if self == .weakDate { version.date = .fixed(1_700_000_000 + Int64(seed)) }
                if self == .undated { version.date = .absent }
            case .nothing:
                version.etag = .absent
                version.lastModified = nil
            }
            return version
        }

        /// `true` if a resume fetches only the overlap again.
        var resumes: Bool { self != .nothing }
        /// `true` if several connections may write at once.
        var isStrong: Bool { self == .strong || self == .strongDate }
    }

    /// Rows 28–30, 113: the proof with which bytes may be joined, and the cost.
    @Test(arguments: Naming.allCases) func rows28To30Resume(_ naming: Naming) async throws {
        // The rate is limited so that the plan, and not the machine, decides how far a connection gets until it is cut.
        try await Site.with(try await Site(Resource(naming.version(), rate: 10_000_000))) { site in
            let first = try await site.interrupt(after: Scenario.held)
            let outcome = try await site.download { $0.connections = 4 }
            try site.expectFile(outcome)
            #expect(outcome.says(.restarted) != naming.resumes)
            if naming.resumes { #expect(outcome.received <= site.length - Scenario.held + 512 << 10) }
            for request in site.requests.dropFirst(first) {
                let condition = request.info.field("If-Range")
                #expect(naming.isStrong || condition == nil, "a weak validator is not sent")
                #expect(condition?.hasPrefix("W/") != true)
            }
        }
    }

    /// Row 29: with `--unsafe-resume`, length and overlap are enough.
    @Test func row29UnsafeResume() async throws {
        try await Site.with(try await Site(Resource(Naming.nothing.version()))) { site in
            try await site.interrupt(after: Scenario.held)
            let before = site.served
            let outcome = try await site.download { $0.allowsUnsafeResume = true }
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted))
            #expect(site.served - before < 2_000_000)
        }
    }

    /// Row 29: a known checksum is proof enough to resume, and it is verified.
    @Test(arguments: [false, true]) func row29Checksum(changes: Bool) async throws {
        let old = Naming.nothing.version()
        let new = Naming.nothing.version(seed: 7)
        try await Site.with(try await Site(Resource(old))) { site in
            let expected = changes ? new : old
            let checksum = try #require(
                Checksum(algorithm: .crc32c, value: CRC32C.bigEndian(expected.content.bytes(in: 0..<3_000_000))))
            try await site.interrupt(after: Scenario.held) { $0.checksum = checksum }
            if changes { site.server.replace(Site.path, with: new) }
            let outcome = try await site.download { $0.checksum = checksum }
            try site.expectFile(outcome, expected)
            #expect(outcome.says(.restarted) == changes)
        }
    }

    /// Row 31: two edges with different tags, alternating: the same bytes arrive completely, at bounded cost.
    @Test(arguments: [1, 4]) func row31AlternatingTags(connections: Int) async throws {
        try await Site.with(try await Site(.always(.alternatingETags))) { site in
            let outcome = try await site.download { $0.connections = connections }
            try site.law(outcome)
            #expect(Double(site.served) < 8 * Double(site.length))
            #expect(site.requests.count < 60)
        }
    }

    /// Row 31: two edges with different versions, alternating, and every answer is cut: one of the two, or an error.
    @Test(arguments: [1, 4]) func row31AlternatingVersions(connections: Int) async throws {
        let versions = [Version(seed: 1, length: 3_000_000), Version(seed: 2, length: 3_000_000)]
        let behaviour = Behaviour { context in
            let version = versions[context.request.index % 2]
            let whole = context.correct(of: version)
            guard context.asked.count > 400_000 else { return whole }
            let part = context.asked.lowerBound..<context.asked.lowerBound + 400_000
            return whole.body([.content(version.content, part), .close])
        }
        try await Site.with(try await Site(behaviour)) { site in
            let outcome = try await site.download { $0.connections = connections }
            try site.law(outcome, versions: versions)
            #expect(site.requests.count < 100)
        }
    }

    /// Row 32 with `--if-changed fail`: no bytes are discarded.
    @Test func row32ChangedAndNotFollowed() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.replace(Site.path, with: Version(seed: 9, length: 3_000_000))
            try site.expectFailure(try await site.download { $0.changed = .fail }, .changedOnServer)
            #expect(site.hasPart && site.hasJournal)
            site.server.replace(Site.path, with: Version(seed: 1, length: 3_000_000))
            // The server may still count the last bytes of the refused answer after the download has ended.
            await site.server.log.wait { $0.requests.allSatisfy { $0.ended != nil } }
            let before = site.served
            try site.expectFile(try await site.download { $0.changed = .fail })
            #expect(site.served - before < 2_000_000)
        }
    }

    /// Row 33: other bytes under the same tag, everywhere: the overlap before the seam detects it.
    @Test(arguments: [1, 4]) func row33SameTagOtherBytes(connections: Int) async throws {
        let lying = Version(seed: 99, length: 3_000_000, etag: .strong("1-3000000"))
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.replace(Site.path, with: lying)
            let outcome = try await site.download { $0.connections = connections }
            try site.expectFile(outcome, lying)
            #expect(outcome.says(.restarted))
        }
    }

    /// Row 33, where the change does not touch an overlap: only a digest can detect it.
    @Test func row33ChangeAwayFromTheSeamNeedsADigest() async throws {
        try await Site.with(try await Site()) { site in
            let checksum = try #require(
                Checksum(
                    algorithm: .crc32c,
                    value: CRC32C.bigEndian(Version(seed: 1, length: 3_000_000).content.bytes(in: 0..<3_000_000))))
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.corruptByte(at: 2_500_000)), for: Site.path)
            try site.expectFailure(try await site.download { $0.checksum = checksum }, .checksumMismatch)
            #expect(site.scratch.isThere("file.bin.tow-bad"))
        }
    }

    /// Row 34: the file grows under the same tag: the download delivers the old length, or all of the new file.
    @Test(arguments: [1, 4]) func row34FileGrows(connections: Int) async throws {
        let old = Version(seed: 1, length: 3_000_000)
        var new = old
        new.length += 250_000
        for tag in [Version.EntityTag.strong("log"), .strong("log2")] {
            try await Site.with(try await Site(Resource(old.with(etag: .strong("log"))))) { site in
                try await site.interrupt(after: Scenario.held)
                site.server.replace(Site.path, with: new.with(etag: tag))
                let outcome = try await site.download { $0.connections = connections }
                try site.expectFile(outcome, new)
            }
        }
    }

    /// Row 35: each response labels a stored file with a coding that fits its name; each response breaks off.
    @Test(arguments: [1, 4]) func row35LabelOfTheStoredFile(connections: Int) async throws {
        let labelled = Behaviour { context in
            let reply = Fault.fields([("Content-Encoding", "br")]).make(context)
            let asked = context.asked
            guard asked.count > 800_000 else { return reply }
            let sent = asked.lowerBound..<asked.lowerBound + 800_000
            return reply.body([.content(context.version.content, sent), .close])
        }
        let path = "/app.wasm.br"
        let resource = Resource(length: 3_000_000, behaviour: labelled)
        try await Site.with(try await Site(more: [path: resource])) { site in
            let outcome = try await site.download(path) { $0.connections = connections }
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted) && !outcome.says(.singleStream))
            #expect(site.server.log.bodyBytesServed(path) < 4_000_000)
        }
    }

    /// Row 35: every range is coded: no ranges can be joined, and the saved file is never a mixture of two.
    @Test func row35EveryRangeIsCoded() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.codedPart), for: Site.path)
            try site.law(try await site.download())
        }
    }

    /// Row 37: a login page on the very first request, where evidence shows that it is not the file.
    @Test func row37CaptivePortalAtTheStart() async throws {
        try await Site.with(try await Site(.always(.page))) { site in
            let checksum = try #require(
                Checksum(
                    algorithm: .crc32c,
                    value: CRC32C.bigEndian(Version(seed: 1, length: 3_000_000).content.bytes(in: 0..<3_000_000))))
            try site.expectFailure(
                try await site.download { $0.checksum = checksum }, .checksumMismatch, .transient)
            try await site.expectRecovery { $0.checksum = checksum }
        }
    }

    /// Row 37: a captive portal redirects to its page when the download resumes.
    @Test func row37CaptivePortalOnResume() async throws {
        let page = Resource(Version(seed: 8, length: 2000), contentType: "text/html")
        try await Site.with(try await Site(more: ["/login": page])) { site in
            let first = try await site.interrupt(after: Scenario.held)
            site.server.set(.on([first, first + 1], .captivePortal("/login")), for: Site.path)
            let outcome = try await site.download()
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted))
        }
    }

    /// Row 49: the first URL now redirects elsewhere; the validator decides whether the bytes are kept.
    @Test(arguments: [false, true]) func row49RedirectOnResume(sameFile: Bool) async throws {
        let other = sameFile ? Version(seed: 1, length: 3_000_000) : Version(seed: 4, length: 3_000_000)
        try await Site.with(try await Site(more: ["/other": Resource(other)])) { site in
            try await site.interrupt(after: Scenario.held)
            site.server.set(.always(.redirect(to: "/other")), for: Site.path)
            let outcome = try await site.download()
            try site.expectFile(outcome, other)
            #expect(outcome.says(.restarted) != sameFile)
            let fetched = site.server.log.bodyBytesServed("/other")
            if sameFile { #expect(fetched < 2_000_000) }
        }
    }

    /// Row 54: the wrong bytes are kept aside, never under the name; the next run fetches the right ones.
    @Test func row54ReprDigestMismatch() async throws {
        try await Site.with(try await Site(.always(.wrongReprDigest))) { site in
            try site.expectFailure(try await site.download(), .checksumMismatch)
            #expect(site.scratch.isThere("file.bin.tow-bad"))
            #expect(!site.hasJournal)
            try await site.expectRecovery()
        }
    }
}

extension CRC32C {
    /// Returns the checksum as a ``Checksum`` holds it.
    static func bigEndian(_ bytes: [UInt8]) -> [UInt8] {
        let value = checksum(bytes)
        return (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
    }
}
