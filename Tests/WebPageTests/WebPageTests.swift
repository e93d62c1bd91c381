import FaultServer
import Foundation
import TestServers
import Testing

/// Tests of the web page in Debian's Chromium, with the built `towd`. The tests are Python programs (`*_test.py` in
/// this directory), because Python needs few lines to control a browser and reports the line of a failure.
@Suite(.serialized, .enabled(if: Programs.areThere("/usr/bin/chromium", "/usr/bin/chromedriver", Programs.python)))
struct WebPageTests {
    /// Runs all tests with one browser and one service, because their start takes longer than most tests.
    @Test(.timeLimit(.minutes(19))) func thePageInABrowser() async throws {
        let folder = try TemporaryFolder()
        let files = try await Self.files(log: folder.path + "/log")
        let port = Loopback.freePort()
        let towd = try await Self.service(folder, port: port)
        let token = folder.read("state/token").trimmingCharacters(in: .whitespacesAndNewlines)
        let run = try await PythonProgram(
            [
                "-m", "unittest", "-v", "page_test", "adding_test", "upkeep_test", "access_test", "everyday_test",
                "tabs_test",
                "long_list_test",
            ],
            in: folder,
            environment: [
                "TOWLINE_PAGE": "http://127.0.0.1:\(port)/", "TOWLINE_TOKEN": token,
                "TOWLINE_FILES": "http://127.0.0.1:\(files.port)", "TOWLINE_LOG": folder.path + "/log",
                "TOWLINE_AXE": PythonProgram.fetched + "/axe/axe.min.js",
                "TOWLINE_PICTURES": PythonProgram.fetched + "/page-pictures",
            ])
        withExtendedLifetime(towd) {}
        await files.stop()
        #expect(run.status == 0, "\(run.output.suffix(20_000))\ntowd: \(folder.read("towd.log").suffix(2000))")
    }

    /// Starts the file server. Files below `/slow/` and `/mapped/` take longer than a test; `/small/` files are
    /// immediate.
    private static func files(log: String) async throws -> FaultServer {
        var options = ServerOptions()
        options.logFile = LogFile(path: log)
        return try await FaultServer.start(
            [
                "/slow/*": Resource(length: 1 << 30, rate: 300_000),
                "/mapped/*": Resource(length: 256 << 20, rate: 300_000),
                "/small/*": Resource(length: 64 << 10),
            ], options: options)
    }

    private static func service(_ folder: TemporaryFolder, port: UInt16) async throws -> ServerProgram {
        // Uses an empty configuration file, so that the configuration of this machine's user has no effect.
        let configuration = try folder.write("towd.yaml", "{}\n")
        try FileManager.default.createDirectory(atPath: folder.path + "/downloads", withIntermediateDirectories: true)
        return try await ServerProgram(
            PythonProgram.towd,
            [
                "--state", folder.path + "/state", "--downloads", folder.path + "/downloads",
                "--socket", folder.path + "/towd.sock", "--listen", "127.0.0.1:\(port)", "--config", configuration,
                // The name is not a secure context, as the page of a server in a local network.
                "--host", "nas.test",
            ], port: port, log: folder.path + "/towd.log")
    }
}
