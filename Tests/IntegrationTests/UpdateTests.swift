import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

/// `--if-exists update` against servers with and without conditional requests (row 36).
@Suite(.timeLimit(.minutes(3)))
struct UpdateTests {
    private static let sizes: [Int64] = [20_000, 3_000_000]

    private func update(_ site: Site, _ change: (inout DownloadOptions) -> Void = { _ in }) async throws -> Outcome {
        try await site.download {
            $0.existing = .update
            change(&$0)
        }
    }

    private func isUpToDate(_ outcome: Outcome) -> Bool {
        if case .success(let completed) = outcome.result, case .upToDate = completed.outcome { true } else { false }
    }

    /// Returns a site with the file, which is downloaded.
    private func site(
        _ length: Int64, _ version: Version? = nil, _ change: (Site) async throws -> Void
    ) async throws {
        let site = try await Site(Resource(version ?? Version(seed: 1, length: length)))
        try await Site.with(site) { site in
            try site.expectFile(try await site.download())
            try await change(site)
        }
    }

    @Test(arguments: sizes, ["both", "tag", "date"])
    func notModified(_ length: Int64, _ validators: String) async throws {
        let version = Version(
            length: length, etag: validators == "date" ? .absent : nil,
            lastModified: validators == "tag" ? nil : 1_700_000_000)
        try await site(length, version) { site in
            let served = site.served
            let outcome = try await update(site)
            #expect(isUpToDate(outcome) && outcome.received == 0, "\(outcome.result)")
            #expect(site.requests.count == 2 && site.requests[1].status == 304 && site.served == served)
            #expect(try site.published([version]) != nil && site.scratch.names == [Site.name])
        }
    }

    /// An updated file has validators, too.
    @Test(arguments: sizes) func changed(_ length: Int64) async throws {
        try await site(length) { site in
            let newest = try #require(site.server.version(Site.path)).replaced(seed: 2)
            site.server.replace(Site.path, with: newest)
            try site.expectFile(try await update(site), newest)
            #expect(isUpToDate(try await update(site)))
            #expect(site.requests.map { $0.status } == [206, 206, 304])
            // Without the option no request is sent.
            let plain = try await site.download()
            #expect(plain.succeeded && site.requests.count == 3)
        }
    }

    /// The answer shows that the file is the same: its body is not needed.
    @Test(arguments: sizes) func theConditionIsIgnored(_ length: Int64) async throws {
        try await site(length) { site in
            site.server.set(.always(.ignoresConditions), for: Site.path)
            let outcome = try await update(site)
            #expect(isUpToDate(outcome), "\(outcome.result)")
            #expect(outcome.received <= 20_000 && site.scratch.names == [Site.name])
            let newest = try #require(site.server.version(Site.path)).replaced(seed: 2)
            site.server.replace(Site.path, with: newest)
            try site.expectFile(try await update(site), newest)
        }
    }

    /// One server confirms every condition, the other refuses requests with conditions.
    @Test(arguments: [Fault.confirmsEveryCondition, .refusesConditions], [false, true])
    func aConditionThatHarms(_ fault: Fault, _ isSequential: Bool) async throws {
        try await site(3_000_000) { site in
            let newest = try #require(site.server.version(Site.path)).replaced(seed: 2)
            site.server.replace(Site.path, with: newest)
            site.server.set(.always(fault), for: Site.path)
            try site.expectFile(try await update(site) { $0.isSequential = isSequential }, newest)
        }
    }

    /// Without a validator, versions cannot be compared.
    @Test(arguments: sizes) func withoutAValidator(_ length: Int64) async throws {
        try await site(length, Version(length: length, etag: .absent, lastModified: nil)) { site in
            let newest = Version(seed: 2, length: length, etag: .absent, lastModified: nil)
            site.server.replace(Site.path, with: newest)
            let outcome = try await update(site)
            try site.expectFile(outcome, newest)
            #expect(outcome.notices.contains { $0.message.contains("cannot be compared") }, "\(outcome.notices)")
        }
    }

    /// Another program's file, or one that the user changed: its length and its date are compared, as with wget -N.
    @Test(arguments: ["same", "older", "shorter", "appended"]) func aForeignFile(_ kind: String) async throws {
        let length: Int64 = 3_000_000
        let version = Version(length: length)
        let site = try await Site(Resource(version))
        try await Site.with(site) { site in
            let path = site.scratch.file(Site.name)
            if kind == "appended" { try site.expectFile(try await site.download()) }
            var bytes = version.content.bytes(in: 0..<length)
            if kind == "shorter" { bytes.removeLast() }
            if kind == "appended" { bytes.append(0) }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let date = Date(timeIntervalSince1970: 1_700_000_000 + (kind == "older" ? -1 : 99))
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
            let outcome = try await update(site)
            #expect(isUpToDate(outcome) == (kind == "same"), "\(outcome.result)")
            try site.expectFile(outcome, version)
            #expect(site.requests.allSatisfy { $0.info.field("If-Modified-Since") == nil })
        }
    }

    /// The old file stays until the new one is complete, and an interrupted update resumes.
    @Test func interrupted() async throws {
        try await site(3_000_000) { site in
            let oldest = try #require(site.server.version(Site.path))
            let newest = oldest.replaced(seed: 2)
            site.server.replace(Site.path, with: newest)
            let before = try await site.interrupt(after: 1_500_000) { $0.existing = .update }
            #expect(try site.published([oldest]) != nil && site.hasPart)
            let outcome = try await update(site)
            try site.expectFile(outcome, newest)
            #expect(outcome.received < 1_700_000)
            #expect(site.requests.dropFirst(before).allSatisfy { $0.info.field("If-None-Match") == nil })
        }
    }

    @Test(arguments: [404, 503]) func aFailedUpdateLeavesTheOldFile(_ status: Int) async throws {
        try await site(3_000_000) { site in
            let oldest = try #require(site.server.version(Site.path))
            site.server.set(.always(.status(status)), for: Site.path)
            #expect(try await !update(site).succeeded)
            #expect(try site.published([oldest]) != nil && site.scratch.names == [Site.name])
        }
    }

    /// A server that breaks off each response of a new version.
    @Test func aBrokenUpdateLeavesTheOldFile() async throws {
        let version = Version(length: 3_000_000, etag: .absent)
        try await site(3_000_000, version) { site in
            site.server.replace(Site.path, with: version.replaced(seed: 2, etag: .absent))
            site.server.set(
                Behaviour { $0.correct.body([.content($0.version.content, 0..<1_000_000), .close]) }, for: Site.path)
            let outcome = try await update(site) { $0.maximumTries = 2 }
            #expect(!outcome.succeeded)
            #expect(try site.published([version]) != nil)
        }
    }

    /// A link to the latest version redirects to another file with the same tag: the files differ.
    @Test(arguments: [false, true]) func throughARedirect(_ isMoved: Bool) async throws {
        let first = Version(seed: 1, length: 3_000_000, etag: .strong("1"))
        let second = Version(seed: 2, length: 3_000_000, etag: .strong("1"), lastModified: 1_600_000_000)
        let more = [
            "/latest": Resource(first, behaviour: .always(.redirect(to: "/v1/file.bin"))),
            "/v1/file.bin": Resource(first), "/v2/file.bin": Resource(second),
        ]
        try await Site.with(try await Site(Resource(first), more: more)) { site in
            #expect(try await site.download("/latest").succeeded)
            if isMoved { site.server.set(.always(.redirect(to: "/v2/file.bin")), for: "/latest") }
            let outcome = try await site.download("/latest") { $0.existing = .update }
            #expect(isUpToDate(outcome) == !isMoved, "\(outcome.result)")
            #expect(try site.published([isMoved ? second : first]) != nil)
            #expect(site.server.log.requests("/v1/file.bin").last?.status == (isMoved ? 206 : 304))
            #expect(site.server.log.requests("/latest").allSatisfy { $0.info.field("If-None-Match") == nil })
        }
    }

    /// A checksum decides without a request; a file that does not match is replaced, whatever the server states.
    @Test func withAChecksum() async throws {
        try await site(3_000_000) { site in
            let oldest = try #require(site.server.version(Site.path))
            let newest = Version(seed: 2, length: 3_000_000, etag: oldest.etag)
            let sums = [oldest, newest].map {
                Checksum(algorithm: .crc32c, value: CRC32C.bigEndian($0.content.bytes(in: 0..<$0.length)))
            }
            let same = try await update(site) { $0.checksum = sums[0] }
            #expect(isUpToDate(same) && site.requests.count == 1, "\(same.result)")
            site.server.replace(Site.path, with: newest)
            try site.expectFile(try await update(site) { $0.checksum = sums[1] }, newest)
            #expect(site.requests.count == 2 && site.requests[1].info.field("If-None-Match") == nil)
        }
    }
}
