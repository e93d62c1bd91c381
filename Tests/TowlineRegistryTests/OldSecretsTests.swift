import Foundation
import GRDB
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Secrets that a download no longer needs leave the write-ahead log, not only the database.
@Suite(.timeLimit(.minutes(1))) struct OldSecretsTests {
    private let state = TemporaryState()
    private static let secret = "canary-7f3a"

    private func holdsSecret() -> Bool {
        state.names.contains { Data(state.bytes($0)).range(of: Data(Self.secret.utf8)) != nil }
    }

    /// Waits until no file contains the secret.
    private func secretIsGone() async throws {
        while holdsSecret() { try await Task.sleep(for: .milliseconds(20)) }
    }

    private static func download(_ number: Int) -> RegisteredDownload {
        var download = Sample.download(number)
        download.options = Array(#"{"user":"me:\#(secret)"}"#.utf8)
        return download
    }

    /// The change at the end of a download: the state, and options without secrets.
    private static func end(_ id: DownloadID) -> RegistryChange {
        var change = RegistryChange(id, state: .init(.finished))
        change.options = Array("{}".utf8)
        return change
    }

    @Test func theLogIsEmptiedWhileTheRegistryIsOpen() async throws {
        let registry = try await state.open()
        for number in 0..<3 {
            let download = Self.download(number)
            _ = try await registry.add([download])
            #expect(holdsSecret())
            try await registry.apply([Self.end(download.id)])
            try await secretIsGone()
        }
        await registry.close()
    }

    /// Another program reads the database: writes do not wait for it, and the log is emptied when it has finished.
    @Test func aReaderDelaysOnlyTheEmptying() async throws {
        let registry = try await state.open()
        let download = Self.download(1)
        _ = try await registry.add([download])
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let reader = try DatabaseQueue(path: state.database, configuration: configuration)
        try reader.inDatabase { database in
            try database.beginTransaction(.deferred)
            #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM downloads") == 1)
        }
        try await registry.apply([Self.end(download.id)])
        // The log cannot be emptied in these two seconds, and no write waits for that.
        let start = ContinuousClock.now
        var number = 2
        while start.duration(to: .now) < .seconds(2) {
            _ = try await registry.add([Sample.download(number)])
            number += 1
        }
        #expect(number > 10)
        #expect(holdsSecret(), "the reader sees the old row")
        try reader.inDatabase { try $0.commit() }
        try reader.close()
        try await secretIsGone()
        await registry.close()
    }

    /// SQLite keeps the log at the end if another program has opened the database.
    @Test func theLogIsEmptiedWhenTheRegistryIsClosed() async throws {
        let registry = try await state.open()
        let download = Self.download(1)
        _ = try await registry.add([download])
        let other = try DatabaseQueue(path: state.database)
        #expect(try await other.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM downloads") } == 1)
        try await registry.apply([Self.end(download.id)])
        await registry.close()
        #expect(!holdsSecret())
        try other.close()
    }

    /// A process was killed after the change. Its log is in the state directory.
    @Test func theLogOfAnEarlierProcessIsEmptied() async throws {
        let registry = try await state.open()
        let download = Self.download(1)
        _ = try await registry.add([download])
        try await registry.apply([Self.end(download.id)])
        let later = TemporaryState()
        mkdir(later.directory, 0o700)
        for name in ["registry.sqlite", "registry.sqlite-wal"] {
            writeFile(later.directory + "/" + name, state.bytes(name))
        }
        await registry.close()
        let again = try await later.open()
        while String(decoding: later.bytes("registry.sqlite-wal"), as: UTF8.self).contains(Self.secret) {
            try await Task.sleep(for: .milliseconds(20))
        }
        await again.close()
    }
}
