import Foundation
import GRDB
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Tests of the state directory: its lock, its permissions, and removed data.
@Suite struct StateDirectoryTests {
    private let state = TemporaryState()

    @Test func row107TheSecondProcessIsToldWhoHasIt() async throws {
        let child = try Child(Child.victim, [state.directory, "1", "3", "hold"])
        #expect(child.wait(for: "done"))
        let error = await #expect(throws: TowlineError.self) { try await state.open() }
        #expect(error?.code == .registryBusy)
        #expect(error?.message.contains("process \(child.process.processIdentifier) ") == true)
        child.kill()
        let registry = try await state.open()
        #expect(registry.notices.isEmpty)
        let own = await #expect(throws: TowlineError.self) { try await state.open() }
        #expect(own?.message.contains("this process") == true)
    }

    @Test func onlyTheOwnerMayRead() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1)])
        #expect(state.mode("") == 0o700)
        let names = state.names
        #expect(names.contains("registry.sqlite-wal") && names.contains("registry.sqlite-shm"))
        for name in names { #expect(state.mode(name) == 0o600, "\(name)") }
        await registry.close()
        chmod(state.database, 0o644)
        let again = try await state.open()
        _ = try await again.add([Sample.download(2)])
        for name in state.names { #expect(state.mode(name) == 0o600, "\(name)") }
    }

    /// The list holds commands to run, so no other user may be able to write it.
    @Test(arguments: [(0o700, true), (0o755, true), (0o770, false), (0o777, false), (0o1777, false)])
    func onlyTheOwnerMayWrite(_ mode: mode_t, _ isUsed: Bool) async throws {
        try FileManager.default.createDirectory(atPath: state.directory, withIntermediateDirectories: true)
        #expect(chmod(state.directory, mode) == 0)
        if !isUsed {
            let error = await #expect(throws: TowlineError.self) { try await state.open() }
            // The message contains the command that mends the directory.
            let command = try #require(error?.message.components(separatedBy: "Run: ").last)
            let shell = try Process.run(URL(fileURLWithPath: "/bin/sh"), arguments: ["-c", command])
            shell.waitUntilExit()
        }
        let registry = try await state.open()
        await registry.close()
        guard getuid() == 0, isUsed else { return }
        #expect(chown(state.directory, 65534, 65534) == 0)
        await #expect(throws: TowlineError.self) { try await state.open() }
    }

    /// Runs as another user, because root may write to read-only files.
    @Test(arguments: ["registry.sqlite", "registry.sqlite-wal", ""])
    func row109ReadOnlyIsAClearError(_ name: String) async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1)])
        let copies = state.names.map { ($0, state.bytes($0)) }
        await registry.close()
        for (name, bytes) in copies { writeFile(state.directory + "/" + name, bytes) }
        let path = state.directory + (name.isEmpty ? "" : "/" + name)
        var runner = [Child.victim, state.directory, "1", "3"]
        if geteuid() == 0 {
            for file in state.names { chown(state.directory + "/" + file, 65_534, 65_534) }
            chown(state.directory, 65_534, 65_534)
            chmod(state.path, 0o755)
            runner = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + runner
        }
        chmod(path, name.isEmpty ? 0o500 : 0o400)
        let child = try Child(runner[0], Array(runner.dropFirst()))
        let said = child.finish()
        #expect(said.hasPrefix("error diskPermission ") && said.contains(path), "\(said)")
        #expect(!said.contains("damaged"))
        chmod(path, name.isEmpty ? 0o700 : 0o600)
        #expect(state.names.allSatisfy { !$0.contains("damaged") })
    }

    /// Another program, such as a backup or the SQLite shell, locks the database. Writes wait, reads continue, and no
    /// call fails.
    @Test func row103AnotherProgramThatLocksTheDatabaseIsWaitedFor() async throws {
        let seconds = getenv("TOWLINE_TORTURE") == nil ? 3 : 60
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1)])
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: state.database, configuration: configuration)
        let clock = ContinuousClock()
        let start = clock.now
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN EXCLUSIVE") }
        async let added = registry.add([Sample.download(2)])
        async let changed = registry.apply([RegistryChange(Sample.id(1), state: .init(.paused))])
        for _ in 0..<10 { #expect(try await registry.totals().counts == [.queued: 1]) }
        try await clock.sleep(until: start + .seconds(seconds))
        try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        #expect(try await added == [.added])
        #expect(try await changed == [.applied])
        #expect(clock.now - start >= .seconds(seconds))
        #expect(try await registry.totals().counts == [.queued: 1, .paused: 1])
        try other.close()
    }

    /// Row 125: no file contains data of a removed download, regardless of its position in the database.
    @Test func row125RemovedMeansGone() async throws {
        let registry = try await state.open()
        var generator = SeededGenerator(seed: 9)
        func canary(_ number: Int) -> RegisteredDownload {
            var download = Sample.download(number)
            download.source = "https://user:CANARY-\(number)@host.example/\(number)?token=CANARY-\(number)"
            download.identity = "identity CANARY-\(number)"
            download.options =
                Array("CANARY-\(number)-option".utf8)
                + [UInt8](
                    repeating: 65, count: number % 10 == 0 ? 9_000 : Int.random(in: 0..<900, using: &generator))
            download.metadata = ["cookie": "CANARY-\(number)-metadata"]
            return download
        }
        // Mixes removed, kept and changed downloads, so that pages are split and merged meanwhile.
        for start in stride(from: 0, to: 1_000, by: 50) {
            _ = try await registry.add((start..<start + 50).map { $0 % 3 == 0 ? Sample.download($0) : canary($0) })
        }
        for number in stride(from: 1, to: 1_000, by: 6) where number % 3 != 0 {
            var change = RegistryChange(Sample.id(number))
            change.source = "https://host.example/CANARY-\(number)-renewed?sig=CANARY-\(number)"
            change.options = Array("CANARY-\(number)-changed".utf8)
            change.metadata = ["k": String(repeating: "CANARY-\(number)", count: number % 90)]
            try await registry.apply([change])
        }
        let canaries = (0..<1_000).filter { $0 % 3 != 0 }.shuffled(using: &generator)
        for start in stride(from: 0, to: canaries.count, by: 37) {
            try await registry.remove(canaries[start..<min(start + 37, canaries.count)].map { Sample.id($0) })
        }
        #expect(try await registry.totals().counts == [.queued: 334])
        for name in state.names { #expect(count("CANARY", in: state.bytes(name)) == 0, "\(name), open") }
        await registry.close()
        for name in state.names { #expect(count("CANARY", in: state.bytes(name)) == 0, "\(name), closed") }
    }

    private func count(_ word: String, in bytes: [UInt8]) -> Int {
        var count = 0
        var rest = Data(bytes)
        while let range = rest.range(of: Data(word.utf8)) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }

    @Test func directoriesWithStrangeNamesAreRemembered() async throws {
        let names = ["/a\nb", "/back\\slash\\n", "/", "/ü ü", "/\u{1B}[31m"]
        let registry = try await state.open()
        for (number, name) in names.enumerated() {
            var download = Sample.download(number)
            download.directory = name
            _ = try await registry.add([download])
        }
        await registry.close()
        // Appends a line that a power failure truncated.
        writeFile(state.directory + "/directories", state.bytes("directories") + Array("/cut off".utf8))
        let again = try await state.open()
        #expect(again.directory?.knownDirectories == names.sorted())
        _ = try await again.add([Sample.download(77)])
        await again.close()
        #expect(try await state.open().directory?.knownDirectories == (names + ["/cut off", "/downloads/2"]).sorted())
    }

    /// The durability and the removal of data depend on these settings of the writer.
    @Test func theSettingsOfTheWriterAreOurs() async throws {
        try FileManager.default.createDirectory(atPath: state.directory, withIntermediateDirectories: true)
        let connections = try Connections(path: state.database)
        let settings = try await connections.writer.read { database in
            try ["synchronous", "secure_delete", "journal_mode"].map {
                try String.fetchOne(database, sql: "PRAGMA \($0)")
            }
        }
        #expect(settings == ["2", "1", "wal"])
        connections.close()
    }
}
