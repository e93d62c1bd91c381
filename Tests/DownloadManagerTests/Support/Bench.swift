import FaultServer
import Foundation
import Towline
import TowlineTesting

/// A kind of download manager, for tests that hold for all of them.
enum Kind: CaseIterable, Sendable {
    case real, scripted, remote

    func bench() async throws -> any Bench {
        switch self {
        case .real: try await RealBench()
        case .scripted: try ScriptedBench()
        case .remote: try await RemoteBench()
        }
    }
}

/// A download manager with an empty list, and with a server or a script that supplies three files: `fast` arrives at
/// once, `slow` takes longer than any test, and `missing` does not exist.
protocol Bench: Sendable {
    var manager: any DownloadManager { get }
    var downloads: URL { get }
    /// Returns the URL of a file.
    func link(_ name: String) -> String
    /// Makes sure that a download of `fast` finishes.
    func finish(_ id: DownloadID) throws
    /// Makes sure that a download of `slow` receives bytes.
    func deliver(_ id: DownloadID) throws
    /// Makes sure that a download of `missing` fails with `notFound`.
    func fail(_ id: DownloadID) throws
    func end() async throws
}

extension Bench {
    func request(_ name: String, _ change: (inout DownloadRequest) -> Void = { _ in }) throws -> DownloadRequest {
        guard let url = URL(string: link(name)) else { throw URLError(.badURL) }
        var request = DownloadRequest(from: url, to: .directory(downloads))
        change(&request)
        return request
    }

    func finish(_ id: DownloadID) throws {}
    func deliver(_ id: DownloadID) throws {}
    func fail(_ id: DownloadID) throws {}
}

/// A directory that is removed with the object.
final class Folder: Sendable {
    let url: URL
    let downloads: URL

    init() throws {
        let root = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
        url = root.appendingPathComponent("manager-\(UUID().uuidString)")
        downloads = url.appendingPathComponent("downloads", isDirectory: true)
        try FileManager.default.createDirectory(at: downloads, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// A server of the three files.
struct FileServer: Sendable {
    static let fast = Version(seed: 1, length: 200_000)
    static let slow = Version(seed: 2, length: 40_000_000)
    let server: FaultServer

    init() async throws {
        server = try await FaultServer.start([
            "/fast": Resource(Self.fast), "/slow": Resource(Self.slow, rate: 200_000),
        ])
    }
}

struct RealBench: Bench {
    private let folder: Folder
    private let files: FileServer
    let manager: any DownloadManager
    var downloads: URL { folder.downloads }

    init() async throws {
        folder = try Folder()
        files = try await FileServer()
        var configuration = Downloader.Configuration()
        configuration.snapshotInterval = .milliseconds(50)
        manager = try await Downloader(
            stateDirectory: folder.url.appendingPathComponent("state"), configuration: configuration)
    }

    func link(_ name: String) -> String { files.server.url("/" + name) }

    func end() async throws {
        await manager.close()
        await files.server.stop()
    }
}

struct ScriptedBench: Bench {
    private let folder: Folder
    private let scripted = ScriptedDownloader()
    var manager: any DownloadManager { scripted }
    var downloads: URL { folder.downloads }

    init() throws { folder = try Folder() }

    func link(_ name: String) -> String { "http://127.0.0.1:9/" + name }

    func finish(_ id: DownloadID) throws {
        try scripted.receive(FileServer.fast.length, of: id)
        try scripted.finish(id)
    }

    func deliver(_ id: DownloadID) throws { try scripted.receive(1000, of: id) }

    func fail(_ id: DownloadID) throws {
        try scripted.fail(id, with: TowlineError(.notFound, "the file does not exist", status: 404))
    }

    func end() async throws { await manager.close() }
}
