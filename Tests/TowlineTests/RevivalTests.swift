import FaultServer
import Foundation
import Testing
import Towline

/// A failed or cancelled download that is added again uses the new request.
@Suite struct RevivalTests {
    private static let version = Version(seed: 51, length: 200_000)

    /// Adds a download, waits until it fails, and adds it again with a changed request.
    private func again(
        _ site: Site, first: (inout DownloadRequest) -> Void = { _ in }, second: (inout DownloadRequest) -> Void
    ) async throws -> (Downloader, Download) {
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file", first))
        try await download.reaches { $0.isOver }
        #expect(try await download.snapshot.state == .failed)
        let same = try await downloader.add(try site.request("/file", second))
        #expect(same.id == download.id)
        return (downloader, same)
    }

    @Test func withThePasswordThatWasMissing() async throws {
        let fault = Fault.authorizationRequired("Basic " + Data("me:secret".utf8).base64EncodedString())
        let site = try await Site(["/file": Resource(Self.version, behaviour: .always(fault))])
        let (downloader, download) = try await again(site) { $0.user = "me:secret" }
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    @Test func withAnotherWordOnTheFileThatIsThere() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let place = site.downloads.appendingPathComponent("file")
        try Data("something else".utf8).write(to: place)
        let (downloader, download) = try await again(
            site, first: { $0.destination = .file(place) },
            second: {
                $0.destination = .file(place)
                $0.existing = .overwrite
            })
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    /// A finished download that is added with `update` asks the server again and gets a new version.
    @Test(arguments: [false, true]) func aFinishedOneToBeUpdated(_ isChanged: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        _ = try await downloader.add(try site.request("/file")).file
        let newest = isChanged ? Self.version.replaced(seed: 52) : Self.version
        if isChanged { site.server.replace("/file", with: newest) }
        let before = site.server.log.requests("/file").count
        let again = try await downloader.add(try site.request("/file") { $0.existing = .update })
        _ = try await again.file
        #expect(site.holds("file", newest))
        let last = try #require(site.server.log.requests("/file").last)
        #expect(site.server.log.requests("/file").count == before + 1)
        #expect(last.info.field("If-None-Match") == Self.version.etag.field)
        await downloader.close()
        await site.server.stop()
    }

    @Test func withoutTheWrongChecksum() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let (downloader, download) = try await again(
            site, first: { $0.checksum = Checksum(algorithm: .sha256, value: Array(repeating: 0, count: 32)) },
            second: { _ in })
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
    }

    @Test func withItsPlaceInTheQueueAndWhatTheCallerKeepsWithIt() async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .first(2, .status(404)))])
        let (downloader, download) = try await again(site, first: { $0.metadata = ["a": "1"] }) {
            $0.metadata = ["b": "2"]
            $0.group = "films"
            $0.priority = 7
            $0.startsPaused = true
        }
        let snapshot = try await download.snapshot
        #expect(snapshot.state == .paused)
        #expect(snapshot.metadata == ["b": "2"])
        #expect(snapshot.group == "films")
        #expect(snapshot.priority == 7)
        #expect(snapshot.error == nil)
        try await download.resume()
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
    }

    /// Other options end a wait, because they may remove its reason. The same request keeps the wait.
    @Test(.timeLimit(.minutes(1))) func withOtherOptionsThanThoseItWaitsWith() async throws {
        let site = try await Site(["/file.bin": Resource(Self.version, behaviour: .always(.page))])
        let downloader = try await site.downloader { $0.networkRetryInterval = .seconds(600) }
        let download = try await downloader.add(try site.request("/file.bin"))
        // The waits between the attempts of one transfer are short.
        @Sendable func waitsLong(_ snapshot: DownloadSnapshot) -> Bool {
            snapshot.waitsUntil.map { $0.timeIntervalSinceNow > 60 } ?? false
        }
        try await download.reaches(waitsLong)
        try await downloader.add(try site.request("/file.bin"))
        #expect(waitsLong(try await download.snapshot))
        #expect(try await downloader.add(try site.request("/file.bin") { $0.acceptsWebPages = true }).id == download.id)
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
    }

    /// The restriction to public addresses stays, whether the first or the second request has it: a remote client and
    /// the owner of this machine may add the same URL.
    @Test(arguments: [(true, false), (false, true)])
    func aRuleForOneAskerStays(_ first: Bool, _ second: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .first(2, .status(404)))])
        let (downloader, download) = try await again(
            site, first: { $0.publicAddressesOnly = first }, second: { $0.publicAddressesOnly = second })
        let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
        #expect(error?.code == .addressRefused)
        #expect(try await download.request.publicAddressesOnly)
        await downloader.close()
        await site.server.stop()
    }
}
