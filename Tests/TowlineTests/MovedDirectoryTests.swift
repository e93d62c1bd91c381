import FaultServer
import Foundation
import Testing
import TowlineCore

@testable import Towline

/// Changes of the directory of a download whose files were moved.
@Suite(.timeLimit(.minutes(1))) struct MovedDirectoryTests {
    private func directory(_ site: Site, _ name: String) throws -> URL {
        let directory = site.downloads.appendingPathComponent(name, isDirectory: true)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        return directory
    }

    /// One URL in one directory is one download.
    @Test func aDirectoryWithTheSameURLIsRefused() async throws {
        let site = try await Site(["/a.bin": Resource(length: 1000)])
        let (old, new) = (try directory(site, "old"), try directory(site, "new"))
        let downloader = try await site.downloader()
        let downloads = try await downloader.add(
            contentsOf: [old, new].map { directory in
                try site.request("/a.bin") { ($0.destination, $0.startsPaused) = (.directory(directory), true) }
            })
        let error = await #expect(throws: TowlineError.self) { try await downloads[0].setDirectory(new) }
        #expect(error?.code == .destinationBusy)
        #expect(try await downloads[0].snapshot.directory == old.path)
        await downloader.close()
        await site.server.stop()
    }

    /// An archive is unpacked below the new directory if that was below the old one.
    @Test func followUpsMoveWithTheDirectory() async throws {
        let site = try await Site([:])
        let (old, new) = (try directory(site, "old"), try directory(site, "new"))
        let elsewhere = try directory(site, "elsewhere")
        let downloader = try await site.downloader()
        let download = try await downloader.add(
            site.request("/a.zip") {
                ($0.destination, $0.startsPaused) = (.directory(old), true)
                $0.followUps = [.unpack(into: old.appendingPathComponent("a/b")), .unpack(into: elsewhere)]
            })
        try await download.setDirectory(new)
        let paths = try await download.request.followUps.map { action in
            if case .unpack(let place, _) = action { place.path } else { "\(action)" }
        }
        #expect(paths == [new.path + "/a/b", elsewhere.path])
        await downloader.close()
        await site.server.stop()
    }
}
