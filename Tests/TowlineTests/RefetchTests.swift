import Foundation
import Testing
import TowlineEngine
import TowlineTesting

@testable import Towline

/// A finished file that is downloaded again: the old file stays until the new one is complete.
@Suite(.timeLimit(.minutes(1))) struct RefetchTests {
    private static let old = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    private static let new = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 17 &+ $0 >> 7) })
    private static let link = "https://example.org/film.mp4"

    /// A network with one file, whose old version was downloaded.
    private struct Scene {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("refetch-\(UUID().uuidString)")
        let network = ScriptedNetwork()
        var state: URL { root.appendingPathComponent("state") }
        var request: DownloadRequest {
            get throws { DownloadRequest(from: try #require(URL(string: RefetchTests.link)), to: .directory(root)) }
        }

        init() throws {
            try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
            network[RefetchTests.link] = .init(RefetchTests.old)
        }

        func downloader(_ state: URL? = nil, on network: ScriptedNetwork? = nil) async throws -> Downloader {
            var configuration = Downloader.Configuration()
            configuration.networkRetryInterval = .milliseconds(50)
            return try await Downloader(
                stateDirectory: state ?? self.state, configuration: configuration,
                transport: (network ?? self.network).transport)
        }

        /// Replaces the file of the server by its new version.
        func change(bytesPerSecond: Int? = nil) {
            network[RefetchTests.link] = .init(
                RefetchTests.new, entityTag: "\"2\"", bytesPerSecond: bytesPerSecond)
        }
    }

    private func withScene(_ body: (Scene) async throws -> Void) async throws {
        let scene = try Scene()
        defer { try? FileManager.default.removeItem(at: scene.root) }
        try await body(scene)
    }

    @Test func theOldFileStaysUntilTheNewOneIsComplete() async throws {
        try await withScene { scene in
            let downloader = try await scene.downloader()
            let download = try await downloader.add(scene.request)
            let file = try await download.file
            scene.change(bytesPerSecond: 1_000_000)
            try await download.refetch()
            let begun = try await download.reaches { $0.heldBytes > 100_000 }
            #expect(begun.state == .downloading && begun.completeLength == Int64(Self.new.count))
            #expect(try Data(contentsOf: file) == Self.old)
            await #expect(throws: TowlineError.self, "it runs already") { try await download.refetch() }
            scene.change()
            scene.network.breakConnections()
            #expect(try await download.file == file && Data(contentsOf: file) == Self.new)
            #expect(try await download.request == scene.request, "the request is as before")
            let count = scene.network.requests.count
            #expect(try await downloader.add(scene.request) == download)
            #expect(scene.network.requests.count == count, "finished again")
            await downloader.close()
        }
    }

    @Test(arguments: [true, false]) func removingWithFilesRemovesTheOldFile(_ isPaused: Bool) async throws {
        try await withScene { scene in
            let downloader = try await scene.downloader()
            let download = try await downloader.add(scene.request)
            _ = try await download.file
            scene.change(bytesPerSecond: 100_000)
            try await download.refetch()
            try await download.reaches { $0.state == .downloading && $0.heldBytes > 0 }
            if isPaused { try await download.pause() }
            try await download.remove(deletingFiles: true)
            let names = try FileManager.default.contentsOfDirectory(atPath: scene.root.path)
            #expect(names == ["state"])
            await downloader.close()
        }
    }

    @Test func theOldFileStaysIfTheServerHasNoneAnyMore() async throws {
        try await withScene { scene in
            let downloader = try await scene.downloader()
            let download = try await downloader.add(scene.request)
            let file = try await download.file
            scene.network[Self.link] = .init(status: 404)
            try await download.refetch()
            try await download.reaches { $0.state == .failed }
            try await download.cancel()
            #expect(try Data(contentsOf: file) == Self.old)
            // Start continues the refetch.
            scene.change()
            try await download.start()
            #expect(try Data(contentsOf: try await download.file) == Self.new)
            await downloader.close()
        }
    }

    /// The state directory as it is on the disk after `refetch` returned is what a SIGKILL leaves.
    @Test func aKillKeepsTheRefetchAndTheOldFile() async throws {
        try await withScene { scene in
            let downloader = try await scene.downloader()
            let download = try await downloader.add(scene.request)
            let file = try await download.file
            scene.network.isConnected = false
            try await download.refetch()
            let copy = scene.root.appendingPathComponent("copy")
            try FileManager.default.copyItem(at: scene.state, to: copy)
            await downloader.close()

            let later = ScriptedNetwork()
            later.isConnected = false
            let survivor = try await scene.downloader(copy, on: later)
            let same = try #require(try await survivor.download(download.id))
            #expect(try await !same.snapshot.isOver)
            #expect(try Data(contentsOf: file) == Self.old)
            later[Self.link] = .init(Self.new, entityTag: "\"2\"")
            later.isConnected = true
            #expect(try await same.file == file && Data(contentsOf: file) == Self.new)
            await survivor.close()
        }
    }

    @Test func aMovedFileIsReplacedAtItsNewPlace() async throws {
        try await withScene { scene in
            let downloader = try await scene.downloader()
            let place = scene.root.appendingPathComponent("moved/other.mp4")
            try FileManager.default.createDirectory(
                at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            var request = try scene.request
            request.followUps = [.move(to: place)]
            let download = try await downloader.add(request)
            #expect(try await download.file == place)
            scene.change()
            try await download.refetch()
            #expect(try await download.file == place && Data(contentsOf: place) == Self.new)
            #expect(!FileManager.default.fileExists(atPath: scene.root.appendingPathComponent("film.mp4").path))
            await downloader.close()
        }
    }

    @Test func onlyAFinishedFileIsDownloadedAgain() async throws {
        try await withScene { scene in
            let downloader = try await scene.downloader()
            var request = try scene.request
            request.startsPaused = true
            let download = try await downloader.add(request)
            let error = await #expect(throws: TowlineError.self) { try await download.refetch() }
            #expect(error?.code == .illegalTransition)
            #expect(try await download.snapshot.state == .paused)
            await downloader.close()
        }
    }

    /// The place of a file that was unpacked and deleted has the unpacked directory, which is not replaced.
    @Test(arguments: [(FollowUpState.done, true), (.failed(0, "no space"), false), (.none, false)])
    func anUnpackedAndDeletedFileIsNotDownloadedAgain(_ state: FollowUpState, _ isRefused: Bool) throws {
        let folder = URL(fileURLWithPath: "/srv", isDirectory: true)
        var request = DownloadRequest(from: try #require(URL(string: Self.link)), to: .directory(folder))
        request.followUps = [.unpack(into: folder.appendingPathComponent("film"), deletesArchive: true)]
        var record = try RegisteredDownload(DownloadID(milliseconds: 1, random: (0, 1)), request, at: 1)
        (record.state, record.reasonCode) = (.finished, state.code)
        let change = Result { () throws(TowlineError) in try RegistryChange(refetching: record, at: 2) }
        #expect((try? change.get()) == nil ? isRefused : !isRefused)
    }
}
