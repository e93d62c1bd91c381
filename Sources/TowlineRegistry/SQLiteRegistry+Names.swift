internal import GRDB
package import TowlineCore

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
}
