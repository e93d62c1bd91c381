internal import Foundation
internal import GRDB
package import TowlineCore
package import TowlineEngine

extension SQLiteRegistry {
    package func downloads(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload] {
        try await read { try DownloadTable.downloads(ids, in: $0) }
    }

    package func find(identity: String) async throws(TowlineError) -> DownloadID? {
        try await read { try DownloadTable.find(identity: identity, in: $0) }
    }

    package func page(_ query: DownloadQuery) async throws(TowlineError) -> RegistryPage {
        let isFiltered = !query.filters.isEmpty || query.group != nil || query.text?.isEmpty == false
        return try await read(walks: isFiltered) { database in
            let page = try PageQuery(query, rare: try DownloadTable.rare(query, in: database))
            let rows = try Row.fetchCursor(
                try database.cachedStatement(sql: page.sql), arguments: page.arguments)
            var found: [DownloadRow] = []
            while let row = try rows.next() { found.append(try DownloadRow(row)) }
            return page.page(found)
        }
    }

    package func nextQueued(limit: Int, blockedHosts: Set<String>, blockedGroups: Set<String>)
        async throws(TowlineError) -> [RegisteredDownload]
    {
        if limit <= 0 { return [] }
        return try await read { database in
            try QueueHead(limit: limit, blockedHosts: blockedHosts, blockedGroups: blockedGroups).fetch(database)
        }
    }

    package func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError)
        -> [TimelineNote]
    {
        try await read { database in
            guard let download = try DownloadTable.number(of: id, in: database) else { return [] }
            return try Row.fetchAll(
                database,
                sql: """
                    SELECT number, time, kind, message FROM entries \
                    WHERE download = ? AND number > ? ORDER BY number LIMIT ?
                    """, arguments: [download, number, max(0, limit)]
            ).map { row in
                let reader = RowReader(row: row)
                return TimelineNote(
                    number: try reader.integer(0), time: try reader.integer(1), kind: try reader.text(2),
                    message: try reader.text(3))
            }
        }
    }

    package func totals() async throws(TowlineError) -> DownloadTotals {
        try await read { try DownloadTable.totals(in: $0) }
    }

    package func values(prefix: String) async throws(TowlineError) -> [String: String] {
        try await read { database in
            try Self.pairs(
                Row.fetchAll(
                    database, sql: "SELECT name, value FROM settings WHERE substr(name, 1, length(?1)) = ?1",
                    arguments: [prefix]))
        }
    }

    private static func pairs(_ rows: [Row]) throws -> [String: String] {
        var pairs: [String: String] = [:]
        for row in rows {
            let reader = RowReader(row: row)
            pairs[try reader.text(0)] = try reader.text(1)
        }
        return pairs
    }

    package func hostKnowledge() async throws(TowlineError) -> [String: String] {
        try await read { database in
            try Self.pairs(Row.fetchAll(database, sql: "SELECT origin, knowledge FROM hosts"))
        }
    }
}

extension DownloadTable {
    static func totals(in database: Database) throws -> DownloadTotals {
        var totals = DownloadTotals()
        let rows = try Row.fetchAll(
            database, sql: "SELECT state, count, held_low, held_high, complete_low, complete_high FROM totals")
        guard rows.count == RegisteredState.allCases.count else { throw DamagedRow() }
        for row in rows {
            let reader = RowReader(row: row)
            guard let state = Int(exactly: try reader.integer(0)).flatMap(RegisteredState.init(number:)),
                let count = Int(exactly: try reader.bounded(1)), count >= 0
            else { throw DamagedRow() }
            if count > 0 { totals.counts[state] = count }
            totals.heldBytes.addClipped(high: try reader.bounded(3), low: try reader.bounded(2))
            totals.completeLength.addClipped(high: try reader.bounded(5), low: try reader.bounded(4))
        }
        return totals
    }

    /// Returns the filter of the query that leaves few rows; `nil` if no filter does.
    static func rare(_ query: DownloadQuery, in database: Database) throws -> PageQuery.Rare? {
        if !query.filters.isEmpty {
            let counts = try totals(in: database).counts
            let count = query.filters.reduce(0) { $0 + counts[$1, default: 0] }
            if count <= PageQuery.sortable { return .states }
        }
        if let group = query.group {
            let count = try Int.fetchOne(
                database,
                sql: """
                    SELECT count(*) FROM (SELECT 1 FROM downloads INDEXED BY downloads_group \
                    WHERE "group" = ? LIMIT \(PageQuery.sortable + 1))
                    """, arguments: [group])
            if let count, count <= PageQuery.sortable { return .group }
        }
        return nil
    }
}

extension Int64 {
    /// Adds `high` · 2³² + `low`, limited to `Int64.max`.
    fileprivate mutating func addClipped(high: Int64, low: Int64) {
        let (shifted, tooHigh) = high.multipliedReportingOverflow(by: 1 << 32)
        let (sum, overflow) = shifted.addingReportingOverflow(low)
        let (total, tooMuch) = addingReportingOverflow(sum)
        self = tooHigh || overflow || tooMuch ? .max : total
    }
}
