internal import Foundation
internal import GRDB
package import TowlineCore
package import TowlineEngine

extension SQLiteRegistry {
    package func add(_ downloads: [RegisteredDownload], check: @escaping RegistryDuplicateCheck)
        async throws(TowlineError) -> [RegistryAddition]
    {
        if downloads.isEmpty { return [] }
        let directory = directory
        return try await write(changing: downloads.count) { database in
            // Before the commit: if the database is lost, only known directories are searched for journals.
            try directory?.remember(Set(downloads.map(\.directory)))
            return try DownloadTable.add(downloads, to: database, check)
        }
    }

    @discardableResult
    package func apply(_ changes: [RegistryChange]) async throws(TowlineError) -> [RegistryOutcome] {
        if changes.isEmpty { return [] }
        let outcomes = try await write(changing: changes.count) { database in
            try changes.map { try DownloadTable.apply($0, to: database) }
        }
        // The old options may have contained secrets.
        if changes.contains(where: { $0.options != nil }) { emptyLogSoon() }
        return outcomes
    }

    package func move(_ id: DownloadID, before: DownloadID?) async throws(TowlineError) {
        try await write { try QueuePlace.move(id, before: before, in: $0) }
    }

    @discardableResult
    package func remove(
        _ ids: [DownloadID], onlyFrom state: RegisteredState?
    ) async throws(TowlineError) -> [RegistryOutcome] {
        if ids.isEmpty { return [] }
        do throws(TowlineError) {
            return try await removeNow(ids, onlyFrom: state)
        } catch  where error.code == .diskFull {
            guard directory?.releaseSpace() == true else { throw error }
            defer { directory?.reserveSpace() }
            return try await removeNow(ids, onlyFrom: state)
        }
    }

    private func removeNow(
        _ ids: [DownloadID], onlyFrom state: RegisteredState?
    ) async throws(TowlineError) -> [RegistryOutcome] {
        let outcomes = try await write(changing: ids.count) { database in
            try ids.map { try DownloadTable.remove($0, onlyFrom: state, from: database) }
        }
        try await emptyLog()
        directory?.reserveSpace()
        return outcomes
    }

    package func claim(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload] {
        if ids.isEmpty { return [] }
        return try await write(changing: ids.count) { database in
            let claimed = try ids.filter { id in
                var change = RegistryChange(id, state: .init(.active))
                change.onlyFrom = .queued
                return try DownloadTable.apply(change, to: database) == .applied
            }
            return try DownloadTable.downloads(claimed, in: database)
        }
    }

    package func changeAll(from states: Set<RegisteredState>, to state: RegisteredState, group: String?)
        async throws(TowlineError) -> Int
    {
        if states.isEmpty { return 0 }
        return try await write(changing: .max) {
            try DownloadTable.changeAll(from: states, to: state, group: group, in: $0)
        }
    }

    package func setValue(_ value: String?, for name: String) async throws(TowlineError) {
        try await write { database in
            guard let value else {
                try database.execute(sql: "DELETE FROM settings WHERE name = ?", arguments: [name])
                return
            }
            try database.execute(sql: "INSERT OR REPLACE INTO settings VALUES (?, ?)", arguments: [name, value])
        }
    }

    package func setHostKnowledge(_ knowledge: String, for origin: String) async throws(TowlineError) {
        try await write { database in
            try database.execute(
                sql: """
                    INSERT OR REPLACE INTO hosts (origin, written, knowledge) \
                    VALUES (?, (SELECT coalesce(max(written), 0) + 1 FROM hosts), ?)
                    """, arguments: [origin, knowledge])
            try database.execute(
                sql: """
                    DELETE FROM hosts WHERE written <= \
                    (SELECT written FROM hosts ORDER BY written DESC LIMIT 1 OFFSET 10000)
                    """)
        }
    }
}

enum DownloadTable {
    static func add(
        _ downloads: [RegisteredDownload], to database: Database, _ check: RegistryDuplicateCheck = { _, _ in }
    ) throws -> [RegistryAddition] {
        var places: [Int: Int64] = [:]
        var totals = TotalsSum()
        let additions: [RegistryAddition] = try downloads.map { download in
            if let existing = try find(identity: download.identity, in: database) {
                for entry in try self.downloads([existing], in: database) { try check(entry, download) }
                return .existing(existing)
            }
            let rank = DownloadRow.rank(download.priority)
            let place = try places[rank] ?? QueuePlace.end(ofRank: rank, in: database)
            guard try DownloadRow.insert(download, place: place, into: database, &totals) else {
                return .existing(download.id)
            }
            places[rank] = place + QueuePlace.gap
            return .added
        }
        try totals.write(to: database)
        return additions
    }

    static func find(identity: String, in database: Database) throws -> DownloadID? {
        let statement = try database.cachedStatement(
            sql: "SELECT id, identity FROM downloads WHERE identity_hash = ?")
        let rows = try Row.fetchCursor(statement, arguments: [DownloadRow.identityHash(identity)])
        while let row = try rows.next() {
            let reader = RowReader(row: row)
            guard try reader.text(1) == identity else { continue }
            guard let id = DownloadID(bytes: try reader.bytes(0)) else { throw DamagedRow() }
            return id
        }
        return nil
    }

    static func downloads(_ ids: [DownloadID], in database: Database) throws -> [RegisteredDownload] {
        let statement = try database.cachedStatement(
            sql: "SELECT \(DownloadRow.columns) FROM downloads WHERE id = ?")
        return try ids.compactMap { id in
            try Row.fetchOne(statement, arguments: [Data(id.bytes)]).map { try DownloadRow($0).download }
        }
    }

    static func number(of id: DownloadID, in database: Database) throws -> Int64? {
        let statement = try database.cachedStatement(sql: "SELECT number FROM downloads WHERE id = ?")
        return try Int64.fetchOne(statement, arguments: [Data(id.bytes)])
    }

    static func apply(_ change: RegistryChange, to database: Database) throws -> RegistryOutcome {
        guard let number = try number(of: change.id, in: database) else { return .missing }
        guard try isDownload(number, in: change.onlyFrom, database) else { return .otherState }
        var columns: [String] = []
        var values: [(any DatabaseValueConvertible)?] = []
        func set(_ column: String, _ value: (any DatabaseValueConvertible)?) {
            columns.append(column)
            values.append(value)
        }
        if let state = change.state {
            set("state", state.state.number)
            set("reason", state.reason)
            set("reason_code", state.reasonCode)
            set("status", state.status)
            set("wait_until", state.waitUntil)
            set("ended_at", state.endedAt ?? -1)
        }
        if let directory = change.directory { set("directory", directory) }
        if let name = change.name {
            set("name", name)
            set("name_key", DownloadRow.nameKey(name))
        }
        if let source = change.source {
            set("source", source)
            set("url_key", DownloadRow.urlKey(source))
        }
        if let host = change.host { set("host", host) }
        if let identity = change.identity {
            set("identity", identity)
            set("identity_hash", DownloadRow.identityHash(identity))
        }
        if let options = change.options { set("options", Data(options)) }
        if let metadata = change.metadata { set("metadata", try DownloadRow.text(metadata)) }
        if let group = change.group { set("\"group\"", group) }
        if let priority = change.priority {
            let rank = DownloadRow.rank(priority)
            set("rank", rank)
            set("place", try QueuePlace.end(ofRank: rank, in: database))
        }
        if let length = change.completeLength { set("complete_length", length ?? -1) }
        if let held = change.heldBytes { set("held_bytes", max(0, held)) }
        try update(number, columns, values, in: database)
        for entry in change.entries { try add(entry, to: number, in: database) }
        return .applied
    }

    /// Returns whether a download has the state. `nil` means every state.
    private static func isDownload(
        _ number: Int64, in state: RegisteredState?, _ database: Database
    ) throws -> Bool {
        guard let state else { return true }
        let statement = try database.cachedStatement(sql: "SELECT state FROM downloads WHERE number = ?")
        return try Int.fetchOne(statement, arguments: [number]) == state.number
    }

    private static func update(
        _ number: Int64, _ columns: [String], _ values: [(any DatabaseValueConvertible)?], in database: Database
    ) throws {
        guard !columns.isEmpty else { return }
        let assignments = columns.map { $0 + " = ?" }.joined(separator: ", ")
        let statement = try database.cachedStatement(sql: "UPDATE downloads SET \(assignments) WHERE number = ?")
        statement.setUncheckedArguments(StatementArguments(values + [number]))
        try statement.execute()
    }

    static func add(_ entry: TimelineNote, to number: Int64, in database: Database) throws {
        let statement = try database.cachedStatement(
            sql: "INSERT INTO entries (download, time, kind, message) VALUES (?, ?, ?, ?)")
        statement.setUncheckedArguments([number, entry.time, entry.kind, entry.message])
        try statement.execute()
    }

    static func remove(
        _ id: DownloadID, onlyFrom state: RegisteredState?, from database: Database
    ) throws -> RegistryOutcome {
        guard let number = try number(of: id, in: database) else { return .missing }
        guard try isDownload(number, in: state, database) else { return .otherState }
        for sql in ["DELETE FROM entries WHERE download = ?", "DELETE FROM downloads WHERE number = ?"] {
            try database.cachedStatement(sql: sql).execute(arguments: [number])
        }
        return .applied
    }

    static func changeAll(
        from states: Set<RegisteredState>, to state: RegisteredState, group: String?, in database: Database
    ) throws -> Int {
        let from = states.map { String($0.number) }.sorted().joined(separator: ", ")
        var sql = "SELECT number FROM downloads INDEXED BY downloads_state WHERE state IN (\(from))"
        var arguments = StatementArguments()
        if let group {
            sql += " AND \"group\" = ?"
            arguments += [group]
        }
        let numbers = try Int64.fetchAll(database, sql: sql, arguments: arguments)
        // One statement for each row: SQLite keeps the changes of a statement in memory until its end.
        let statement = try database.cachedStatement(
            sql: """
                UPDATE downloads SET state = ?, reason = NULL, reason_code = NULL, status = NULL, wait_until = NULL, \
                ended_at = -1 WHERE number = ?
                """)
        for number in numbers { try statement.execute(arguments: [state.number, number]) }
        return numbers.count
    }
}
