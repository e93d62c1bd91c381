internal import Foundation
internal import GRDB
package import TowlineCore
package import TowlineEngine

extension SQLiteRegistry {
    package func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID] {
        try await read(walks: true) { database in
            // No index contains the ends of names. A scan of all names is necessary; SQLite uses the narrowest index.
            let rows = try Row.fetchCursor(database, sql: "SELECT id FROM downloads")
            var found: [DownloadID] = []
            while found.count < limit, let row = try rows.next() {
                guard let id = DownloadID(bytes: try RowReader(row: row).bytes(0)) else { throw DamagedRow() }
                if short.matches(id) { found.append(id) }
            }
            return found
        }
    }

    package func downloads(named name: String, limit: Int) async throws(TowlineError) -> [RegisteredDownload] {
        try await read(walks: true) { database in
            let select = "SELECT \(DownloadRow.columns) FROM downloads INDEXED BY downloads_name WHERE name_key = "
            let key = name.lowercased()
            let named = try Self.rows(database, select + "?", [key], limit: limit) { $0.name == name }
            if named.count == limit { return named }
            // `url_key` has the last component in one of two forms: percent-encoded or decoded.
            let composed = key.precomposedStringWithCanonicalMapping
            let unnamed = try Self.rows(
                database, select + "'' AND instr(url_key, ?) > 0", [composed], limit: limit - named.count
            ) { (try? HTTPURL(parsing: $0.source))?.lastPathComponent == name }
            return named + unnamed
        }
    }

    private static func rows(
        _ database: Database, _ sql: String, _ arguments: StatementArguments, limit: Int,
        where fits: (RegisteredDownload) -> Bool
    ) throws -> [RegisteredDownload] {
        let rows = try Row.fetchCursor(database, sql: sql, arguments: arguments)
        var found: [RegisteredDownload] = []
        while found.count < limit, let row = try rows.next() {
            let download = try DownloadRow(row).download
            if fits(download) { found.append(download) }
        }
        return found
    }
}
