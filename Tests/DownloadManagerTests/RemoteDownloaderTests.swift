import FaultServer
import Foundation
import Synchronization
import Testing
import Towline
import TowlineRemote

/// The list of `towd` in an app: what holds beyond the contract.
@Suite(.timeLimit(.minutes(2))) struct RemoteDownloaderTests {
    /// A server of one file that takes two seconds.
    private static let version = Version(seed: 3, length: 4_000_000)

    private func server() async throws -> FaultServer {
        try await FaultServer.start(["/file": Resource(Self.version, rate: 2_000_000)])
    }

    private func request(_ server: FaultServer, _ bench: RemoteBench) throws -> DownloadRequest {
        let url = try #require(URL(string: server.url("/file")))
        var request = DownloadRequest(from: url, to: .directory(bench.downloads))
        request.connections = 1
        return request
    }

    /// The service is killed and starts again: the same handle, stream and wait continue, and bytes that were written
    /// are not requested again.
    @Test func aHandleSurvivesAKillOfTheService() async throws {
        let (server, bench) = (try await server(), try await RemoteBench())
        let download = try await bench.remote.add(try request(server, bench))
        let seen = Mutex<[DownloadSnapshot]>([])
        let observation = download.observe { snapshot in seen.withLock { $0.append(snapshot) } }
        let waiter = Task { try await download.file }
        try await download.reaches { $0.heldBytes > 1_500_000 }
        bench.kill()
        let error = await #expect(throws: TowlineError.self) { _ = try await download.snapshot }
        #expect(error?.code == .transient && error?.message.contains("towd is not running") == true)
        let before = seen.withLock { $0.count }
        try await bench.start()
        let file = try await waiter.value
        #expect(try Self.version.content.firstMismatch(inFile: file.path, length: Self.version.length) == nil)
        #expect(try await download.snapshot.state == .finished)
        while seen.withLock({ $0.last?.state != .finished }) { try await Task.sleep(for: .milliseconds(10)) }
        #expect(seen.withLock { $0.count } > before)
        #expect(server.log.bodyBytesServed("/file") < Self.version.length + 1_000_000)
        observation.cancel()
        try await bench.end()
        await server.stop()
    }

    /// Readers receive one error for the outage, and `listChanged` after the restart.
    @Test func eventsReportTheOutage() async throws {
        let bench = try await RemoteBench()
        var events = bench.remote.events.makeAsyncIterator()
        #expect(await events.next() == .listChanged)
        bench.kill()
        var trouble: TowlineError?
        while trouble == nil, let event = await events.next() {
            if case .troubled(let error) = event { trouble = error }
        }
        #expect(trouble?.code == .transient)
        try await bench.start()
        #expect(await events.next() == .listChanged)
        try await bench.end()
    }

    /// A stream that begins while the service does not run begins with the first connection.
    @Test func aStreamWaitsForTheService() async throws {
        let bench = try await RemoteBench()
        let download = try await bench.remote.add(try bench.request("slow") { $0.startsPaused = true })
        bench.kill()
        let waiter = Task { await download.snapshots.first { $0.state == .paused } }
        await #expect(throws: TowlineError.self) { try await download.pause() }
        try await bench.start()
        #expect(await waiter.value?.id == download.id)
        try await bench.end()
    }

    @Test func aRemovalByAnotherProgramEndsTheStream() async throws {
        let bench = try await RemoteBench()
        let download = try await bench.remote.add(try bench.request("slow") { $0.startsPaused = true })
        var snapshots = await download.snapshots.makeAsyncIterator()
        #expect(await snapshots.next() != nil)
        let other = RemoteDownloader(stateDirectory: bench.state)
        try await Download(id: download.id, manager: other).remove()
        while await snapshots.next() != nil {}
        try await bench.end()
    }

    /// An option that the service does not have is an error, and is not dropped.
    @Test func whatTheServiceDoesNotHaveIsRefused() async throws {
        let bench = try await RemoteBench(starts: false)
        let requests = try [
            bench.request("fast") { $0.publicAddressesOnly = true },
            bench.request("fast") { $0.certificateAuthorities = bench.downloads },
            bench.request("fast") { $0.followUps = [.move(to: bench.downloads)] },
            bench.request("fast") { $0.followUps = [.unpack(into: bench.downloads, deletesArchive: true)] },
        ]
        for request in requests {
            let error = await #expect(throws: TowlineError.self) { _ = try await bench.remote.add(request) }
            #expect(error?.code == .unusableOption)
        }
        try await bench.end()
    }

    @Test func anArchiveIsUnpackedByTheService() async throws {
        let bench = try await RemoteBench()
        let folder = bench.downloads.appendingPathComponent("unpacked")
        let download = try await bench.remote.add(
            try bench.request("fast") { $0.followUps = [.unpack(into: folder)] })
        let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
        // The file of this server is not an archive.
        #expect(error?.code == .followUpFailed)
        #expect(try await download.file(includingFollowUps: false).lastPathComponent == "fast")
        try await bench.end()
    }
}
