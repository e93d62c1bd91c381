import FaultServer
import Foundation
import TowlineTesting
@testable import Towline

/// A server, a state directory and a folder for downloads.
final class Site: Sendable {
    let server: FaultServer
    let root: URL
    let downloads: URL

    init(_ resources: [String: Resource], rate: Int64? = nil) async throws {
        var options = ServerOptions()
        options.sharedRate = rate
        server = try await FaultServer.start(resources, options: options)
        root = FileManager.default.temporaryDirectory.appendingPathComponent("towline-\(UUID().uuidString)")
        downloads = root.appendingPathComponent("downloads")
        try FileManager.default.createDirectory(at: downloads, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: root) }

    func downloader(
        monitor: ScriptedMonitor? = nil, _ change: (inout Downloader.Configuration) -> Void = { _ in }
    ) async throws -> Downloader {
        var configuration = Downloader.Configuration()
        configuration.snapshotInterval = .seconds(0.05)
        configuration.networkRetryInterval = .seconds(0.2)
        change(&configuration)
        let state = root.appendingPathComponent("state")
        guard let monitor else { return try await Downloader(stateDirectory: state, configuration: configuration) }
        return try await Downloader(
            registry: .stateDirectory(state), configuration: configuration, transport: .curl, monitor: monitor)
    }

    func request(_ path: String, _ change: (inout DownloadRequest) -> Void = { _ in }) throws -> DownloadRequest {
        guard let url = URL(string: server.url(path)) else { throw URLError(.badURL) }
        var request = DownloadRequest(from: url, to: .directory(downloads))
        change(&request)
        return request
    }

    func holds(_ name: String, _ version: Version) -> Bool {
        let path = downloads.appendingPathComponent(name).path
        return version.content.matches(file: path, length: version.length)
    }

    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: downloads.path)) ?? []).sorted()
    }
}

extension Download {
    /// Waits for a snapshot that fits and returns it. Throws if the snapshots end earlier.
    @discardableResult
    func reaches(_ fits: @Sendable (DownloadSnapshot) -> Bool) async throws -> DownloadSnapshot {
        for await snapshot in await snapshots where fits(snapshot) { return snapshot }
        throw NotReached(last: try? await snapshot)
    }

    struct NotReached: Error { let last: DownloadSnapshot? }
}
