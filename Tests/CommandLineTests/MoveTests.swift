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
        // A relative path is below the downloads directory.
        for (folder, path) in [(".", "downloads"), ("./films", "downloads/films")] {
            let again = try await service.tow(["move", "--json", ids[0], folder])
            let row = try #require(try again.objects.first, "\(again.stderr)")
            #expect(row["directory"] as? String == directory.path(path))
        }
    }

    /// No error lets a download start over, or use the files of another one.
    @Test func aDirectoryWithoutTheFilesIsRefused() async throws {
        let server = try await FaultServer.start([
            "/slow.bin": Resource(length: 64 << 20, seed: 7, rate: 1 << 20),
            "/other/slow.bin": Resource(length: 32 << 20, seed: 8, rate: 1 << 20),
            "/small.bin": Resource(length: 1000),
        ])
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        defer { service.kill() }
        let files = FileManager.default
        func add(_ path: String, to folder: String) async throws -> String {
            let added = try await service.tow(["add", "--json", "-d", folder, server.url(path)])
            return try #require(added.objects.first?["id"] as? String, "\(added.stderr)")
        }
        func shown(_ id: String) async throws -> [String: Any] {
            try #require(try await service.tow(["show", "--json", id]).objects.first)
        }
        func pause(_ id: String) async throws {
            try await eventually { try await shown(id)["heldBytes"] as? Int ?? 0 >= 1 << 20 }
            _ = try await service.tow(["pause", id])
        }
        let slow = try await add("/slow.bin", to: "a")
        try await pause(slow)
        let other = try await add("/other/slow.bin", to: "b")
        try await pause(other)
        let small = try await add("/small.bin", to: "c")
        try await eventually { try await shown(small)["state"] as? String == "finished" }

        try files.moveItem(atPath: directory.path("downloads/a"), toPath: directory.path("downloads/moved"))
        let mistyped = try await service.tow(["move", slow, "movd"])
        #expect(mistyped.status == 6 && mistyped.stderr.contains("movd does not exist"), "\(mistyped.stderr)")
        #expect(!files.fileExists(atPath: directory.path("downloads/movd")))
        let used = try await service.tow(["move", slow, "b"])
        #expect(used.status == 9 && used.stderr.contains("another download"), "\(used.stderr)")
        try files.createDirectory(atPath: directory.path("downloads/d"), withIntermediateDirectories: true)
        try files.moveItem(
            atPath: directory.path("downloads/c/small.bin"), toPath: directory.path("downloads/small.bin"))
        let missing = try await service.tow(["move", small, "d"])
        #expect(missing.status == 1 && missing.stderr.contains("small.bin is not in"), "\(missing.stderr)")
        for (id, folder) in [(slow, "moved"), (small, directory.path("downloads"))] {
            let moved = try await service.tow(["move", id, folder])
            #expect(moved.status == 0, "\(moved.stderr)")
        }
        #expect(try await shown(slow)["heldBytes"] as? Int ?? 0 >= 1 << 20)
        await server.stop()
    }

    /// A download that waits for its next attempt moves too. If the new directory is refused, it still waits.
    @Test func aWaitingDownloadMoves() async throws {
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        defer { service.kill() }
        let added = try await service.tow(["add", "--json", "-d", "a", "http://127.0.0.1:1/waits.bin"])
        let id = try #require(added.objects.first?["id"] as? String)
        func state() async throws -> String? {
            try await service.tow(["show", "--json", id]).objects.first?["state"] as? String
        }
        try await eventually { try await state() == "waiting" }
        _ = try await service.tow(["add", "--paused", "-d", "c", "http://127.0.0.1:1/waits.bin"])
        #expect(try await service.tow(["move", id, "c"]).status == 9)
        #expect(try await state() != "paused")
        let moved = try await service.tow(["move", id, "b"])
        #expect(moved.status == 0, "\(moved.stderr)")
        let now = try await state()
        #expect(now != "paused" && now != "failed", "\(now ?? "none")")
    }

    /// A download that failed because its directory was missing continues. The cause of another failure remains.
    @Test func aFailedDownloadContinuesWhereItsFilesAre() async throws {
        let server = try await FaultServer.start([
            "/slow.bin": Resource(length: 64 << 20, seed: 7, rate: 1 << 20),
            "/refused.bin": Resource(length: 1000, behaviour: .always(.status(404))),
        ])
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        defer { service.kill() }
        func add(_ path: String, to folder: String) async throws -> String {
            let added = try await service.tow(["add", "--json", "-d", folder, server.url(path)])
            return try #require(added.objects.first?["id"] as? String, "\(added.stderr)")
        }
        func wait(_ id: String, until isSo: ([String: Any]) -> Bool) async throws {
            try await eventually { isSo(try #require(try await service.tow(["show", "--json", id]).objects.first)) }
        }
        let (lost, refused) = (try await add("/slow.bin", to: "a"), try await add("/refused.bin", to: "b"))
        try await wait(lost) { $0["heldBytes"] as? Int ?? 0 >= 1 << 20 }
        _ = try await service.tow(["pause", lost])
        try FileManager.default.moveItem(
            atPath: directory.path("downloads/a"), toPath: directory.path("downloads/moved"))
        _ = try await service.tow(["resume", lost])
        for id in [lost, refused] { try await wait(id) { $0["state"] as? String == "failed" } }
        let (moved, kept) = (
            try await service.tow(["move", "--json", lost, "moved"]),
            try await service.tow(["move", "--json", refused, "c"])
        )
        #expect(try kept.objects.first?["state"] as? String == "failed", "\(kept.text) \(kept.stderr)")
        #expect(try moved.status == 0 && moved.objects.first?["state"] as? String != "failed", "\(moved.text)")
        #expect(try moved.objects.first?["heldBytes"] as? Int ?? 0 >= 1 << 20, "\(moved.text)")
        try await wait(lost) { $0["heldBytes"] as? Int ?? 0 > 2 << 20 || $0["state"] as? String == "failed" }
        #expect(try await service.tow(["show", "--json", lost]).objects.first?["state"] as? String != "failed")
        await server.stop()
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

    @Test func anUnknownHostIsNamedInPlainWords() async throws {
        let directory = try TestDirectory()
        let words = ["--state", directory.path("state"), "--downloads", directory.path("downloads")]
        let towd = CommandRun.products.appendingPathComponent("towd")
        let result = try await CommandRun(words + ["--listen", "a..b:0"], program: towd).finish()
        #expect(result.status == 6 && result.stderr.contains("cannot listen on a..b:0: unknown host ("))
        #expect(!result.stderr.contains("SocketAddressError"), "\(result.stderr)")
    }

    /// An empty path would stand for the working directory, in which a shell without the variable happens to be.
    @Test(arguments: [
        (["--downloads", ""], "''"), (["--listen", "127.0.0.1:0"], "excludes addresses"),
        (["--config", "/missing.yaml"], "cannot read the configuration file /missing.yaml"),
    ])
    func anOptionThatCannotBeMeantIsRefused(_ options: [String], _ message: String) async throws {
        let directory = try TestDirectory()
        let words = ["--state", directory.path("state"), "--listen", "none"] + options
        let towd = CommandRun.products.appendingPathComponent("towd")
        let result = try await CommandRun(words, program: towd).finish()
        #expect(result.status == 2 && result.stderr.contains(message), "\(result.stderr)")
    }
}
