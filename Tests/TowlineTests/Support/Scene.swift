import FaultServer
import Foundation
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TowlineRegistry

@testable import Towline

/// A download center with a list that can be slow or full, a server and a directory for downloads.
struct Scene {
    let site: Site
    let registry: LateRegistry
    let center: DownloadCenter
    let hub = SnapshotHub()
    let files: WatchedFiles

    init(
        _ resources: [String: Resource], rate: Int64? = nil, performer: any FollowUpPerformer = LocalFollowUps(),
        _ change: (inout Downloader.Configuration) -> Void = { _ in }
    ) async throws {
        site = try await Site(resources, rate: rate)
        registry = LateRegistry(
            try await SQLiteRegistry.open(
                stateDirectory: site.root.appendingPathComponent("state").path, rebuild: { _ in [] }))
        var configuration = Downloader.Configuration()
        configuration.networkRetryInterval = .seconds(0.1)
        change(&configuration)
        let storage = FileStorage()
        files = WatchedFiles(LocalFiles(storage: storage))
        center = DownloadCenter(
            registry: registry,
            services: TransferServices(
                transport: CurlTransport(), storage: storage, board: HostBoard(), limiter: RateLimiter(rate: 0)),
            files: files, performer: performer, configuration: configuration, hub: hub)
    }

    func add(_ path: String, _ change: (inout DownloadRequest) -> Void = { _ in }) async throws -> DownloadID {
        try await center.add([try site.request(path, change)])[0]
    }

    func wait(_ isSo: () async throws -> Bool) async throws {
        while try await !isSo() { try await Task.sleep(for: .milliseconds(20)) }
    }

    func end() async {
        await center.close()
        await site.server.stop()
    }
}
