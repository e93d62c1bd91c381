import FaultServer
import Foundation
import Testing
import Towline
import TowlineCore

/// The options of a link that the list already contains are applied, or the request fails and names them.
@Suite(.timeLimit(.minutes(1))) struct AddedAgainTests {
    private static let version = Version(seed: 61, length: 2_000_000)
    private static let wrong = Checksum(algorithm: .sha256, value: Array(repeating: 0, count: 32))

    private static func right() throws -> Checksum {
        let sum = CRC32C.checksum(version.content.bytes(in: 0..<version.length))
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32($0))) }
        return try #require(Checksum(algorithm: .crc32c, value: bytes))
    }

    /// Adds a slow download and waits until it has bytes.
    private func running(
        _ site: Site, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> (Downloader, Download) {
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file", change))
        try await download.reaches { $0.state == .downloading && $0.heldBytes > 500_000 }
        return (downloader, download)
    }

    private func finished(_ site: Site) async throws -> (Downloader, Download) {
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        _ = try await download.file
        return (downloader, download)
    }

    // MARK: Running

    @Test(arguments: [false, true]) func aRunningDownloadIsVerified(isWrong: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 1_000_000)
        let (downloader, download) = try await running(site) { $0.metadata = ["a": "1"] }
        let checksum = isWrong ? Self.wrong : try Self.right()
        #expect(try await downloader.add(try site.request("/file") { $0.checksum = checksum }).id == download.id)
        try await download.reaches { $0.isOver }
        #expect(try await download.snapshot.state == (isWrong ? .failed : .finished))
        #expect(try await download.snapshot.error?.code == (isWrong ? .checksumMismatch : nil))
        #expect(site.holds("file", Self.version) != isWrong)
        #expect(try await download.snapshot.metadata == ["a": "1"], "the other options stay")
        if !isWrong {
            let served = site.server.log.bodyBytesServed("/file")
            #expect(served < Self.version.length + 700_000, "the restart keeps the bytes: \(served)")
        }
        await downloader.close()
        await site.server.stop()
    }

    @Test func aHeaderIsSentFromNowOn() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 1_000_000)
        let (downloader, download) = try await running(site)
        try await downloader.add(
            try site.request("/file") { request in
                request.headers = [.init("X-Added", "1")]
                request.group = "films"
                request.priority = 3
                request.rateLimit = 5_000_000
            })
        let request = try await download.request
        #expect(request.group == "films" && request.priority == 3 && request.rateLimit == 5_000_000)
        _ = try await download.file
        #expect(site.server.log.requests("/file").last?.info.field("X-Added") == "1")
        await downloader.close()
        await site.server.stop()
    }

    @Test func equalAndDefaultOptionsChangeNothing() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 1_000_000)
        let (downloader, download) = try await running(site) { $0.connections = 1 }
        for change in [{ (_: inout DownloadRequest) in }, { $0.connections = 1 }] {
            try await downloader.add(try site.request("/file", change))
        }
        _ = try await download.file
        #expect(site.server.log.requests("/file").count == 1)
        await downloader.close()
        await site.server.stop()
    }

    /// A server without ranges: a restart would lose the bytes, so nothing is changed.
    @Test func aRestartThatWouldLoseBytesIsRefused() async throws {
        let plain = Resource(Self.version, behaviour: .always(.ignoresRange))
        let site = try await Site(["/file": plain, "/other": Resource(Self.version)], rate: 1_000_000)
        let (downloader, download) = try await running(site)
        try await download.reaches { !$0.canPauseWithoutLoss }
        let requests = [
            try site.request("/other"),
            try site.request("/file") { request in
                request.checksum = Self.wrong
                request.connections = 3
                request.group = "films"
            },
        ]
        let error = await #expect(throws: TowlineError.self) { try await downloader.add(contentsOf: requests) }
        #expect(error?.code == .optionConflict)
        #expect(error?.message.contains("connections, checksum") == true, "\(error?.message ?? "")")
        #expect(try await downloader.find(requests[0]) == nil, "no download was added")
        #expect(try await download.snapshot.group == nil, "no option was changed")
        try await downloader.add(try site.request("/file") { $0.group = "films" })
        #expect(try await download.snapshot.group == "films")
        _ = try await download.file
        #expect(site.server.log.requests("/file").count == 1)
        await downloader.close()
        await site.server.stop()
    }

    // MARK: Not running

    @Test func aPausedDownloadUsesTheOptionsLater() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file") { $0.startsPaused = true })
        try await downloader.add(
            try site.request("/file") { request in
                request.checksum = Self.wrong
                request.priority = 4
            })
        let snapshot = try await download.snapshot
        #expect(snapshot.state == .paused && snapshot.priority == 4)
        try await download.start()
        let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
        #expect(error?.code == .checksumMismatch)
        await downloader.close()
        await site.server.stop()
    }

    @Test func oneRequestContainsTheURLTwice() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let first = try site.request("/file") { $0.startsPaused = true }
        let second = try site.request("/file") { $0.checksum = Self.wrong }
        let downloads = try await downloader.add(contentsOf: [first, second])
        #expect(downloads[0].id == downloads[1].id)
        #expect(try await downloads[0].request.checksum == Self.wrong)
        await downloader.close()
        await site.server.stop()
    }

    // MARK: Finished

    @Test(arguments: [false, true]) func aFinishedFileIsCompared(isWrong: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version), "/other": Resource(Self.version)])
        let (downloader, download) = try await finished(site)
        let checksum = isWrong ? Self.wrong : try Self.right()
        let requests = [try site.request("/other"), try site.request("/file") { $0.checksum = checksum }]
        if isWrong {
            let error = await #expect(throws: TowlineError.self) { try await downloader.add(contentsOf: requests) }
            #expect(error?.code == .checksumMismatch)
            #expect(error?.message.hasPrefix(site.downloads.path + "/file ") == true, "\(error?.message ?? "")")
            #expect(try await downloader.find(requests[0]) == nil, "no download was added")
            #expect(try await download.request.checksum == nil)
        } else {
            #expect(try await downloader.add(contentsOf: requests).count == 2)
            #expect(try await download.request.checksum == checksum)
        }
        #expect(site.holds("file", Self.version))
        #expect(try await download.snapshot.state == .finished)
        #expect(site.server.log.requests("/file").count == 1)
        await downloader.close()
        await site.server.stop()
    }

    @Test func overwriteDownloadsAgain() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let (downloader, download) = try await finished(site)
        let newest = Self.version.replaced(seed: 62)
        site.server.replace("/file", with: newest)
        try await downloader.add(try site.request("/file") { $0.existing = .overwrite })
        _ = try await download.file
        #expect(site.holds("file", newest) && site.names == ["file"])
        await downloader.close()
        await site.server.stop()
    }

    /// Secrets are not stored with a finished download, and a later start uses the other options.
    @Test func aFinishedDownloadStoresOptionsWithoutSecrets() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let (downloader, download) = try await finished(site)
        try await downloader.add(
            try site.request("/file") { request in
                request.user = "me:secret"
                request.headers = [.init("Authorization", "secret")]
                request.connections = 2
                request.priority = 5
            })
        let request = try await download.request
        #expect(request.user == nil && request.headers.isEmpty)
        #expect(request.connections == 2 && request.priority == 5)
        #expect(site.server.log.requests("/file").count == 1)
        await downloader.close()
        await site.server.stop()
    }

    @Test func aFinishedDownloadIsUnpackedLater() async throws {
        let archive = "PK\u{5}\u{6}" + String(repeating: "\0", count: 18)
        let reply = Behaviour { _ in Reply(200, text: archive) }
        let site = try await Site(["/file": Resource(Version(seed: 1, length: 22), behaviour: reply)])
        let (downloader, download) = try await finished(site)
        let out = site.downloads.appendingPathComponent("out")
        let request = try site.request("/file") { $0.followUps = [.unpack(into: out)] }
        try await downloader.add(request)
        try await download.reaches { $0.followUp == .done }
        #expect(site.names == ["file", "out"])
        try await downloader.add(request)
        let other = site.downloads.appendingPathComponent("other")
        let error = await #expect(throws: TowlineError.self) {
            try await downloader.add(try site.request("/file") { $0.followUps = [.unpack(into: other)] })
        }
        #expect(error?.code == .optionConflict)
        await downloader.close()
        await site.server.stop()
    }
}
