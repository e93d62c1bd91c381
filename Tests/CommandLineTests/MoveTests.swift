import FaultServer
import Foundation
import Testing

/// Tests of `tow move` and of the exit statuses of `towd`.
@Suite(.timeLimit(.minutes(2))) struct MoveTests {
    /// An error of one download does not keep the others in their old directory.
    @Test func theOthersMoveAfterAnError() async throws {
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        defer { service.kill() }
        let added = try await service.tow(
            ["add", "--json", "--paused", "http://127.0.0.1:9/a.bin", "http://127.0.0.1:9/b.bin"])
        #expect(added.status == 0, "\(added.stderr)")
        let ids = added.text.split(separator: "\n").compactMap { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["id"] as? String
        }
        #expect(ids.count == 2)
        let place = directory.path("downloads/films")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        let moved = try await service.tow(["move", ids[0], "ZZZZZZ", ids[1], "YYYYYY", place])
        #expect(moved.status == 1, "\(moved.text)")
        for unknown in ["ZZZZZZ", "YYYYYY"] { #expect(moved.stderr.contains(unknown), "\(moved.stderr)") }
        let list = try await service.tow(["list", "--json"])
        let directories = list.text.split(separator: "\n").compactMap { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["directory"] as? String
        }
        #expect(directories == [place, place], "\(list.text)")
    }

    /// systemd starts towd again after 6 (a port or a disk may be free a moment later), and not after 78 and 2.
    @Test(arguments: [("state", 78), ("newer list", 78), ("port", 6), ("option", 2)])
    func theStatusSaysIfARestartHelps(_ cause: String, _ status: Int32) async throws {
        let directory = try TestDirectory()
        var words = ["--state", directory.path("state"), "--downloads", directory.path("downloads"), "--listen"]
        switch cause {
        case "state":
            words.append("none")
            try FileManager.default.createDirectory(
                at: directory.file("state"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o777])
            #expect(chmod(directory.path("state"), 0o777) == 0)
        case "newer list":
            words.append("none")
            try FileManager.default.createDirectory(
                at: directory.file("state"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            // The header of an SQLite database, with `user_version` at offset 60.
            var header = Array("SQLite format 3\u{0}".utf8) + [16, 0, 2, 2, 0, 64, 32, 32]
            header += [UInt8](repeating: 0, count: 4096 - header.count)
            header[60] = 1
            try Data(header).write(to: directory.file("state/registry.sqlite"))
        case "port":
            let server = try await FaultServer.start([:])
            let port = try #require(URL(string: server.url("/"))?.port)
            words.append("127.0.0.1:\(port)")
        default: words.append("nonsense:nonsense")
        }
        let result = try await CommandRun(
            words, program: CommandRun.products.appendingPathComponent("towd")
        ).finish()
        #expect(result.status == status, "\(result.stderr)")
    }
}
