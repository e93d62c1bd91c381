internal import GRDB
package import TowlineCore

extension SQLiteRegistry {
    package func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID] {
        try await read(walks: true) { database in
            // No index has the ends of names: a walk over all of them, by the narrowest one there is.
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
