import Foundation
import Testing

@testable import TowlineService

/// The directory of the service's socket.
@Suite struct SocketDirectoryTests {
    /// A user with write access could replace the socket of the service.
    @Test(arguments: [(0o700, true), (0o755, true), (0o770, false), (0o757, false), (0o1777, false), (0o720, false)])
    func onlyTheOwnerMayWriteThere(_ mode: Int, _ isUsed: Bool) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("socket-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(chmod(directory.path, mode_t(mode)) == 0)
        let place = try? SocketPlace(directory.appendingPathComponent("s"), recordedIn: directory.path)
        #expect((place != nil) == isUsed)
        place?.remove()
    }

    /// `tow` reads the path of the socket from the state directory while the service runs.
    @Test func theStateDirectoryNamesTheSocket() async throws {
        let site = try await ServiceSite()
        let record = site.root.appendingPathComponent("state/socket-path")
        let text = try String(contentsOf: record, encoding: .utf8)
        #expect(text == site.root.path + "/run/towd.sock\n")
        try await site.stop()
        #expect(!FileManager.default.fileExists(atPath: record.path))
    }

    /// At logout, systemd removes the directory of the login session while the service runs on.
    @Test(.timeLimit(.minutes(1))) func aSocketThatIsRemovedIsReplaced() async throws {
        let site = try await ServiceSite { $0.socketCheckInterval = .milliseconds(20) }
        let record = site.root.appendingPathComponent("state/socket-path")
        let socket = site.root.appendingPathComponent("state/towd.sock")
        try FileManager.default.removeItem(at: site.root.appendingPathComponent("run"))
        var status: Int?
        while status != 200 || (try? String(contentsOf: record, encoding: .utf8)) != socket.path + "\n" {
            try await Task.sleep(for: .milliseconds(10))
            status = try? await RawExchange.send("GET", "/api/v1/health", to: .socket(socket.path)).status
        }
        try await site.stop()
        #expect(!FileManager.default.fileExists(atPath: socket.path))
    }
}
