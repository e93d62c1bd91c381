import Foundation
import Synchronization
import Towline
import TowlineRemote

/// The built `towd` with a list of its own, and an app's handle of it.
final class RemoteBench: Bench {
    private let folder: Folder
    private let files: FileServer
    private let service = Mutex<Service?>(nil)
    let remote: RemoteDownloader
    var manager: any DownloadManager { remote }
    var downloads: URL { folder.downloads }
    var state: URL { folder.url.appendingPathComponent("state") }

    /// Creates the folder, the server and the service.
    ///
    /// - Parameter starts: `false` if the test starts the service later.
    init(starts: Bool = true) async throws {
        folder = try Folder()
        files = try await FileServer()
        remote = RemoteDownloader(stateDirectory: folder.url.appendingPathComponent("state"))
        if starts { try await start() }
    }

    deinit { kill() }

    func link(_ name: String) -> String { files.server.url("/" + name) }

    /// Starts `towd` and waits until it responds.
    func start() async throws {
        let new = try Service(state: state, downloads: downloads)
        service.withLock { $0 = new }
        while new.isRunning {
            if (try? await remote.totals) != nil { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw POSIXError(.ESRCH)
    }

    /// Ends `towd` at once, without an orderly end.
    func kill() { service.withLock { $0.take() }?.kill() }

    func end() async throws {
        await remote.close()
        kill()
        await files.server.stop()
    }
}

/// A process of `towd`.
///
/// `@unchecked Sendable`: the process is started in the initializer, and its other methods are safe from any thread.
private final class Service: @unchecked Sendable {
    private let process = Process()

    init(state: URL, downloads: URL) throws {
        let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        process.executableURL = products.appendingPathComponent("towd")
        process.arguments = ["--state", state.path, "--downloads", downloads.path, "--listen", "none"]
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": state.deletingLastPathComponent().path]
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    var isRunning: Bool { process.isRunning }

    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
