internal import Foundation
internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// A search for the first queued downloads that may start. Scans the front of the queue; if blocked hosts fill the
/// front, merges the heads of the other hosts' queues; if there are too many hosts, scans the rest.
struct QueueHead {
    let limit: Int
    let blockedHosts: Set<String>
    let blockedGroups: Set<String>

    /// The maximum number of rows of the front, and of pairs of host and group, before the next method is tried.
    static let budget = 1_000

    func fetch(_ database: Database) throws -> [RegisteredDownload] {
        let front = try walk(database, budget: QueueHead.budget)
        if let found = front { return found }
        if let found = try heads(database) { return found }
        return try walk(database, budget: .max) ?? []
    }

    private func isBlocked(_ host: String, _ group: String?) -> Bool {
        blockedHosts.contains(host) || group.map(blockedGroups.contains) == true
    }

    /// Scans the queue from the front, at most `budget` rows.
    /// - Returns: `nil` if the budget ended before `limit` downloads were found.
    private func walk(_ database: Database, budget: Int) throws -> [RegisteredDownload]? {
        let rows = try Row.fetchCursor(
            try database.cachedStatement(
                sql: """
                    SELECT \(DownloadRow.columns) FROM downloads INDEXED BY downloads_state \
                    WHERE state = 0 ORDER BY rank, place, number
                    """))
        var found: [RegisteredDownload] = []
        var seen = 0
        while found.count < limit {
            guard let row = try rows.next() else { return found }
            guard seen < budget else { return nil }
            seen += 1
            let reader = RowReader(row: row)
            if isBlocked(try reader.text(12), try reader.optionalText(11)) { continue }
            found.append(try DownloadRow(row).download)
        }
        return found
    }

    /// Returns the first downloads of all pairs that are not blocked, merged. `nil` if there are too many pairs.
    private func heads(_ database: Database) throws -> [RegisteredDownload]? {
        var found: [DownloadRow] = []
        var pair = try pair(database, after: nil)
        for _ in 0..<QueueHead.budget {
            guard let current = pair else {
                found.sort { QueueHead.key($0) < QueueHead.key($1) }
                return found.prefix(limit).map(\.download)
            }
            if !isBlocked(current.host, current.group) {
                found += try Row.fetchAll(
                    database.cachedStatement(
                        sql: """
                            SELECT \(DownloadRow.columns) FROM downloads INDEXED BY downloads_queued_host \
                            WHERE state = 0 AND host = ? AND "group" IS ? ORDER BY rank, place, number LIMIT ?
                            """), arguments: [current.host, current.group, limit]
                ).map { try DownloadRow($0) }
            }
            pair = try self.pair(database, after: current)
        }
        return nil
    }

    private static func key(_ row: DownloadRow) -> (Int, Int64, Int64) {
        (DownloadRow.rank(row.download.priority), row.place, row.number)
    }

    /// Returns the next pair in the index, found by a seek: NULL is before every group, and groups before the next
    /// host.
    private func pair(_ database: Database, after previous: (host: String, group: String?)?) throws
        -> (host: String, group: String?)?
    {
        let head = "SELECT host, \"group\" FROM downloads INDEXED BY downloads_queued_host WHERE state = 0 AND "
        let tail = " ORDER BY host, \"group\" LIMIT 1"
        func first(_ condition: String, _ arguments: StatementArguments) throws -> (String, String?)? {
            let statement = try database.cachedStatement(sql: head + condition + tail)
            return try Row.fetchOne(statement, arguments: arguments).map { row in
                let reader = RowReader(row: row)
                return (try reader.text(0), try reader.optionalText(1))
            }
        }
        guard let previous else { return try first("host >= ?", [""]) }
        let isWhollyBlocked = blockedHosts.contains(previous.host)
        if !isWhollyBlocked {
            let next =
                try previous.group.map { try first("host = ? AND \"group\" > ?", [previous.host, $0]) }
                ?? first("host = ? AND \"group\" IS NOT NULL", [previous.host])
            if let next { return next }
        }
        return try first("host > ?", [previous.host])
    }
}
