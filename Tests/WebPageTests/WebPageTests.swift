import FaultServer
import Foundation
import TestServers
import Testing

/// The page in Debian's chromium, with the built `towd` behind it. The tests themselves are Python, `*_test.py` beside
/// this file: what drives a browser is there in a few lines, and a failure names its own line.
@Suite(.serialized, .enabled(if: Programs.areThere("/usr/bin/chromium", "/usr/bin/chromedriver", Programs.python)))
struct WebPageTests {
    @Test(.timeLimit(.minutes(15)), arguments: ["page_test", "access_test"])
    func thePageInABrowser(module: String) async throws {
        let folder = try TemporaryFolder()
        let files = try await PageSite.files(log: folder.path + "/log")
        let service = try await PageSite(folder: folder)
        let status = try await service.run(module, files: files.port, log: folder.path + "/log")
        await files.stop()
        #expect(status == 0, "\(folder.read("browser").suffix(20_000))")
    }
}

/// `towd` as a child process, and what the Python tests need to know of it.
private struct PageSite {
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let port = Loopback.freePort

    let folder: TemporaryFolder
    let port: UInt16
    private let towd: ServerProgram

    /// The file server: `/slow/…` goes on for as long as a test looks at it, `/small/…` is there at once.
    static func files(log: String) async throws -> FaultServer {
        var options = ServerOptions()
        options.logFile = LogFile(path: log)
        return try await FaultServer.start(
            [
                "/slow/*": Resource(length: 1 << 30, rate: 300_000),
                "/small/*": Resource(length: 64 << 10),
            ], options: options)
    }

    init(folder: TemporaryFolder) async throws {
        self.folder = folder
        port = Self.port()
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("towd").path
        // An empty file of its own: one that this machine's user has must not have a say.
        let configuration = try folder.write("towd.yaml", "{}\n")
        try FileManager.default.createDirectory(atPath: folder.path + "/downloads", withIntermediateDirectories: true)
        towd = try await ServerProgram(
            program,
            [
                "--state", folder.path + "/state", "--downloads", folder.path + "/downloads",
                "--socket", folder.path + "/towd.sock", "--listen", "127.0.0.1:\(port)", "--config", configuration,
            ], port: port, log: folder.path + "/towd.log")
    }

    /// Runs the tests of one module; gives the exit status of Python.
    func run(_ module: String, files: Int, log: String) async throws -> Int32 {
        let token = folder.read("state/token").trimmingCharacters(in: .whitespacesAndNewlines)
        let output = try folder.write("browser", "")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Programs.python)
        process.arguments = ["-B", "-m", "unittest", "-v", module]
        process.currentDirectoryURL = Self.here
        process.environment = [
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": folder.path, "LANG": "C.UTF-8", "no_proxy": "*",
            "TOWLINE_PAGE": "http://127.0.0.1:\(port)/#token=\(token)",
            "TOWLINE_FILES": "http://127.0.0.1:\(files)", "TOWLINE_LOG": log,
            "TOWLINE_AXE": Self.here.appendingPathComponent("../../.build/axe/axe.min.js").standardizedFileURL.path,
            "TOWLINE_PICTURES": Self.here.appendingPathComponent("../../.build/page-pictures").standardizedFileURL.path,
        ]
        let handle = FileHandle(forWritingAtPath: output)
        process.standardOutput = handle
        process.standardError = handle
        process.standardInput = FileHandle.nullDevice
        return try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }
}
