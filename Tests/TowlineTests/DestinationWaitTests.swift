import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

@testable import Towline

/// A download waits while its destination cannot be written to, and then continues automatically.
@Suite(.timeLimit(.minutes(2)), .enabled(if: TestDisk.canMount)) struct DestinationWaitTests {
    private static let version = Version(seed: 52, length: 3_000_000)

    /// A reason why a file cannot be written, and the words that the user sees.
    enum Obstacle: String, CaseIterable, Sendable {
        case readOnlyDisk = "read-only"
        case lockedDirectory = "Operation not permitted"
        case otherProcess = "in use"
    }

    /// Puts the obstacle in the way, and returns the function that removes it.
    private func block(_ obstacle: Obstacle, _ directory: URL) throws -> () throws -> Void {
        switch obstacle {
        case .readOnlyDisk:
            let disk = try TestDisk(at: directory)
            try disk.set(readOnly: true)
            return { try disk.set(readOnly: false) }
        case .lockedDirectory:
            try TestDisk.run("/usr/bin/chattr", "+i", directory.path)
            return { try TestDisk.run("/usr/bin/chattr", "-i", directory.path) }
        case .otherProcess:
            let place = Place(directory: directory.path, name: "file")
            let record = DownloadRecord(
                source: "http://example.test/other", resolved: "http://example.test/other", name: "file",
                representation: Representation(completeLength: 5_000_000), checksums: [], generation: 1)
            let part = try FileStorage().create(place, record: record, terms: CreateTerms(journaled: true))
            return { part.sink.discard() }
        }
    }

    @Test(arguments: Obstacle.allCases) func waitsAndRecovers(_ obstacle: Obstacle) async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let directory = site.downloads.appendingPathComponent("disk")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let clear = try block(obstacle, directory)
        let downloader = try await site.downloader {
            ($0.diskRetryInterval, $0.networkRetryInterval) = (.seconds(0.3), .seconds(3600))
        }
        let file = directory.appendingPathComponent("file")
        let download = try await downloader.add(try site.request("/file") { $0.destination = .file(file) })
        let waiting = try await download.reaches { $0.state == .waiting(.destination) || $0.isOver }
        #expect(waiting.state == .waiting(.destination), "\(waiting)")
        #expect(waiting.reason?.contains(obstacle.rawValue) == true, "\(waiting.reason ?? "")")
        #expect(waiting.waitsUntil != nil && waiting.error == nil)
        // The server is not asked again while the disk is the obstacle.
        let requests = site.server.log.requests("/file").count
        try await Task.sleep(for: .seconds(1))
        #expect(site.server.log.requests("/file").count == requests)
        #expect(try await download.snapshot.state == .waiting(.destination))
        try clear()
        #expect(try await download.file == file)
        #expect(try Self.version.content.firstMismatch(inFile: file.path, length: Self.version.length) == nil)
        #expect(try await download.timeline().count { $0.kind == "waiting" } == 1)
        await downloader.close()
        await site.server.stop()
    }
}
