import Foundation
import Fuzzing
import GRDB
import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Tests of databases that this program did not write: valid files with changed cells, and files with changed bytes.
/// `TOWLINE_TORTURE=1` runs the long form. `TOWLINE_FUZZ_SEED` with the seed of a failure repeats the failure.
///
/// A test fails if a call crashes, if a call fails although the list can be rebuilt, or if an extreme number is used.
/// To check the tests, let `RowReader.bounded` accept every number: a queue position then overflows and traps.
@Suite("Fuzz: the list of downloads", .serialized, .timeLimit(.minutes(10))) struct RegistryFuzzTests {
    private typealias Files = [(name: String, bytes: [UInt8])]
    private typealias Table = (name: String, sql: String)

    private let state = TemporaryState()
    private static let count = 40
    private static let cells: [(table: String, columns: [String])] = [
        (
            "downloads",
            [
                "id", "rank", "place", "state", "complete_length", "held_bytes", "added_at", "ended_at", "wait_until",
                "status", "identity_hash", "name_key", "url_key", "\"group\"", "host", "name", "directory",
                "reason_code", "reason", "source", "identity", "metadata", "options",
            ]
        ),
        ("entries", ["number", "download", "time", "kind", "message"]),
        ("totals", ["count", "held_low", "held_high", "complete_low", "complete_high"]),
        ("hosts", ["written", "knowledge"]), ("process", ["openings"]), ("sqlite_sequence", ["seq"]),
    ]

    @Test("Changed cells are accepted or treated as damage")
    func cells() async throws {
        let (files, tables) = try await makeLoose()
        try await run("cells", FuzzSettings.isLong ? 1000 : 60, files) { generator in
            try Self.replaceCells(in: state.database, tables, &generator)
        }
    }

    @Test("Changed bytes of the file are accepted or treated as damage")
    func bytes() async throws {
        let files = try await make()
        try await run("bytes", FuzzSettings.isLong ? 1000 : 60, files, mayFail: true) { generator in
            var bytes = state.bytes("registry.sqlite")
            for _ in 0...generator.below(8) {
                // Leaves the header of SQLite unchanged: format, locking, schema version.
                let place = 100 + generator.below(bytes.count - 100)
                bytes[place] = generator.below(2) == 0 ? bytes[place] ^ 1 << UInt8(generator.below(8)) : 0xFF
            }
            writeFile(state.database, bytes)
        }
    }

    @Test(
        "Extreme numbers are treated as damage",
        arguments: [
            ("rank", .min), ("place", .max), ("place", .min), ("state", -1),
            ("state", Int64(RegisteredState.allCases.count)), ("state", .max), ("held_bytes", -1),
            ("held_bytes", .min), ("added_at", .min), ("added_at", .max), ("ended_at", .max), ("wait_until", .min),
        ] as [(String, Int64)])
    func numbersAtTheEdge(_ column: String, _ number: Int64) async throws {
        _ = try await make()
        let queue = try DatabaseQueue(path: state.database)
        try await queue.write { database in
            try database.execute(sql: "UPDATE downloads SET \(column) = ? WHERE number = 7", arguments: [number])
        }
        try queue.close()
        let registry = try await state.open { _ in (0..<Self.count).map { Sample.download($0) } }
        var query = DownloadQuery()
        query.limit = 100
        #expect(try await registry.page(query).downloads.count == Self.count)
        _ = try await registry.add([Sample.download(500)])
        #expect(registry.notices.count == 1 && registry.notices[0].contains("rebuilt"))
        await registry.close()
    }

    // MARK: Runs

    private func run(
        _ name: String, _ runs: Int, _ files: Files, mayFail: Bool = false,
        _ change: (inout Generator) throws -> Void
    ) async throws {
        var (rebuilt, failed) = (0, 0)
        for run in 0..<runs {
            let seed = FuzzSettings.seed &+ run
            var generator = Generator(seed: UInt64(truncatingIfNeeded: seed))
            for name in state.names { unlink(state.directory + "/" + name) }
            for (name, bytes) in files { writeFile(state.directory + "/" + name, bytes) }
            if FuzzSettings.prints { print("registry \(name): seed \(seed)") }
            try change(&generator)
            do {
                if try await useList() { rebuilt += 1 }
            } catch let error as TowlineError where mayFail {
                failed += 1
                if FuzzSettings.prints { print("registry \(name): seed \(seed): \(error.message)") }
            } catch {
                Issue.record("registry \(name), seed \(seed): \(error)")
                return
            }
        }
        print("fuzz: registry \(name): \(runs) lists, \(rebuilt) rebuilt, \(failed) with an error")
        // If all changes, or no changes, were damage, the test would cover only one case.
        #expect(rebuilt > runs / 20 && rebuilt < runs)
    }

    /// Opens the list and makes the calls that the service makes.
    ///
    /// - Returns: whether the list was rebuilt.
    private func useList() async throws -> Bool {
        let registry = try await state.open { _ in (0..<20).map { Sample.download($0) } }
        for order in DownloadQuery.Order.allCases {
            for descending in [false, true] {
                var query = DownloadQuery()
                (query.limit, query.order, query.descending) = (1000, order, descending)
                let found = try await registry.page(query).downloads
                #expect(found.allSatisfy { $0.heldBytes >= 0 && $0.addedAt.magnitude <= RowReader.bound })
            }
        }
        _ = try await registry.totals()
        _ = try await registry.values(prefix: "")
        _ = try await registry.hostKnowledge()
        _ = try await registry.nextQueued(limit: 50, blockedHosts: ["https://host-1.example:443"], blockedGroups: [])
        _ = try await registry.timeline(of: Sample.id(0), after: 0, limit: 10)
        _ = try await registry.add([Sample.download(500), Sample.download(3)])
        let entry = TimelineNote(time: 1, kind: "k", message: "m")
        try await registry.apply([RegistryChange(Sample.id(500), entries: [entry])])
        for before in [Sample.id(1), nil] {
            do {
                try await registry.move(Sample.id(2), before: before)
            } catch {
                // The two downloads may now have different priorities.
                guard error.code == .unusableOption else { throw error }
            }
        }
        _ = try await registry.changeAll(from: [.queued], to: .paused, group: nil)
        try await registry.setHostKnowledge("k", for: "https://new.example:443")
        try await registry.remove([Sample.id(4)])
        let wasRebuilt = !registry.notices.isEmpty
        await registry.close()
        return wasRebuilt
    }

    /// Creates a list and returns its files.
    private func make() async throws -> Files {
        let registry = try await state.open()
        _ = try await registry.add((0..<Self.count).map { Sample.download($0, group: $0 % 2 == 0 ? "g" : nil) })
        let entry = TimelineNote(time: 1, kind: "k", message: "m")
        try await registry.apply((0..<5).map { RegistryChange(Sample.id($0), entries: [entry, entry]) })
        try await registry.setHostKnowledge("k", for: "https://host-0.example:443")
        try await registry.setValue("5", for: "limit")
        await registry.close()
        return state.names.map { (name: $0, bytes: state.bytes($0)) }
    }

    /// Creates a list whose tables accept values of every type, and returns its files and the declarations of the
    /// tables.
    private func makeLoose() async throws -> (Files, [Table]) {
        _ = try await make()
        let queue = try DatabaseQueue(path: state.database)
        let tables = try await queue.writeWithoutTransaction { database in
            let sql =
                "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name <> 'settings' AND sql LIKE '%STRICT%'"
            let tables = try Row.fetchAll(database, sql: sql).map { Table(name: $0[0], sql: $0[1]) }
            let loose = tables.map { table in
                let sql = table.sql.replacing(") STRICT", with: ")").replacing(" NOT NULL", with: "")
                return Table(name: table.name, sql: sql.replacing("CHECK (only = 1)", with: ""))
            }
            try Self.declare(loose, in: database)
            return tables
        }
        try queue.close()
        return (state.names.map { (name: $0, bytes: state.bytes($0)) }, tables)
    }

    private static func declare(_ tables: [Table], in database: Database) throws {
        try database.execute(sql: "PRAGMA writable_schema = ON")
        for table in tables {
            try database.execute(
                sql: "UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?",
                arguments: [table.sql, table.name])
        }
    }

    private static func replaceCells(in path: String, _ tables: [Table], _ generator: inout Generator) throws {
        let queue = try DatabaseQueue(path: path)
        var changes: [(sql: String, value: DatabaseValue, row: Int)] = []
        for _ in 0...generator.below(3) {
            let (table, columns) = generator.below(2) == 0 ? cells[0] : generator.one(of: cells)
            let place = "rowid = (SELECT rowid FROM \(table) LIMIT 1 OFFSET ?)"
            let sql = "UPDATE \(table) SET \(generator.one(of: columns)) = ? WHERE \(place)"
            changes.append((sql, value(&generator), generator.below(table == "downloads" ? count : 7)))
        }
        if FuzzSettings.prints { for change in changes { print("    \(change)") } }
        // The triggers update the totals. The old totals are restored in half of the cases.
        let keepsTotals = generator.below(2) == 0
        try queue.writeWithoutTransaction { database in
            try database.execute(sql: "CREATE TEMP TABLE kept AS SELECT * FROM totals")
            for change in changes {
                // A value that an index refuses leaves the cell as it was.
                try? database.execute(sql: change.sql, arguments: [change.value, change.row])
            }
            if keepsTotals {
                try database.execute(sql: "DELETE FROM totals; INSERT INTO totals SELECT * FROM kept")
            }
            try declare(tables, in: database)
        }
        try queue.close()
    }

    private static func value(_ generator: inout Generator) -> DatabaseValue {
        let edges: [Int64] = [
            .min, .min + 1, -1, 0, 1, 6, 7, 255, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 53, 1 << 61, 1 << 62, .max - 1,
            .max,
        ]
        switch generator.below(6) {
        case 0, 1: return generator.one(of: edges).databaseValue
        case 2: return generator.one(of: [0.5, -1e300, 1e300, .infinity, 9.3e18]).databaseValue
        case 3:
            return generator.one(of: ["", "x", "{}", "{\"a\":1}", "a\u{0}b", "12", "../x", "\u{1B}[2J"]).databaseValue
        case 4: return .null
        default: return Data(generator.bytes(upTo: 40)).databaseValue
        }
    }
}
