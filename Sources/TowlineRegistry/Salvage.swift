import Glibc
internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// Copies the readable rows of a damaged database. Accepts only rows that this program can have written: the
/// redundant columns must agree.
struct Salvage {
    let path: String
    /// The path for a temporary copy, used if the first page is unreadable.
    let copy: String
    /// The first page of an empty database, which has the same tables in the same pages.
    let firstPage: [UInt8]

    /// Copies the readable rows to a new database.
    /// - Returns: The number of copied downloads.
    func copy(to writer: DatabaseQueue) throws -> Int {
        if FileCall.size(path: path) == 0 {
            guard LogFile(path: path + "-wal").read().frames > 0 else { return 0 }
            // SQLite deletes the log of an empty database, and reads it if the database has a page.
            let file = try FileCall.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
            defer { close(file) }
            guard ftruncate(file, off_t(firstPage.count)) == 0 else {
                throw FileCall.error("cannot write", path, errno)
            }
        }
        if let source = open(path) {
            defer { try? source.close() }
            return try copy(from: source, to: writer)
        }
        defer { for suffix in ["", "-wal", "-shm"] { try? FileCall.remove(copy + suffix) } }
        try makePatchedCopy()
        guard let source = open(copy) else { return 0 }
        defer { try? source.close() }
        return try copy(from: source, to: writer)
    }

    /// Opens the damaged database for reading; `nil` if even the names of the tables are unreadable.
    private func open(_ path: String) -> DatabaseQueue? {
        guard let source = try? DatabaseQueue(path: path, configuration: Connections.configuration(writes: false)),
            let names = try? source.read({ try String.fetchSet($0, sql: "SELECT name FROM sqlite_schema") }),
            names.contains("downloads")
        else { return nil }
        return source
    }

    /// Creates a copy whose first page gives the locations of the tables and the length of the file.
    private func makePatchedCopy() throws {
        let from = try FileCall.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        defer { close(from) }
        let to = try FileCall.open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)
        defer { close(to) }
        let pages = (FileCall.size(from) + firstPage.count - 1) / firstPage.count
        for number in 0..<pages {
            var page = FileCall.read(from, count: firstPage.count, at: number * firstPage.count)
            if number == 0 {
                page = firstPage
                page.put(UInt32(pages), at: 28)
                page.put(0, at: 32)
                page.put(0, at: 36)
                page.put(page.number(at: 24), at: 92)
            }
            page += [UInt8](repeating: 0, count: firstPage.count - page.count)
            guard pwrite(to, page, page.count, off_t(number * page.count)) == page.count else {
                throw FileCall.error("cannot write", copy, errno)
            }
        }
    }

    // MARK: Rows

    private func copy(from source: DatabaseQueue, to writer: DatabaseQueue) throws -> Int {
        var count = 0
        try source.unsafeRead { damaged in
            let numbers = self.numbers(damaged)
            try writer.write { database in
                var totals = TotalsSum()
                for number in numbers {
                    guard let row = self.download(number, damaged) else { continue }
                    guard try DownloadRow.insert(row.download, place: row.place, into: database, &totals) else {
                        continue
                    }
                    count += 1
                    let copied = database.lastInsertedRowID
                    for entry in self.entries(number, damaged) {
                        try DownloadTable.add(entry, to: copied, in: database)
                    }
                }
                try totals.write(to: database)
                try self.copyTable("settings", ["name", "value"], damaged, database)
                try self.copyTable("hosts", ["origin", "written", "knowledge"], damaged, database)
            }
        }
        return count
    }

    /// Returns the numbers of the rows in order: from the table, or also from its indexes if a scan of the table fails.
    private func numbers(_ damaged: Database) -> [Int64] {
        var found: Set<Int64> = []
        func walk(_ source: String, _ order: String) -> Bool {
            do {
                let rows = try Int64.fetchCursor(
                    damaged, sql: "SELECT number FROM downloads \(source) ORDER BY \(order)")
                while let number = try rows.next() { found.insert(number) }
                return true
            } catch {
                return false
            }
        }
        if walk("", "number") { return found.sorted() }
        _ = walk("", "number DESC")
        for (index, columns) in [
            ("id", "id"), ("queue", "rank, place"), ("added", "added_at"), ("name", "name_key"),
            ("size", "complete_length"), ("state", "state, rank, place"), ("ended", "ended_at"),
        ] {
            if walk("INDEXED BY downloads_\(index)", columns) { break }
            let backwards = columns.split(separator: ",").map { $0 + " DESC" }.joined(separator: ",")
            _ = walk("INDEXED BY downloads_\(index)", backwards)
        }
        return found.sorted()
    }

    private func download(_ number: Int64, _ damaged: Database) -> DownloadRow? {
        let sql = "SELECT \(DownloadRow.columns), identity_hash, name_key, url_key FROM downloads WHERE number = ?"
        guard let row = try? Row.fetchOne(damaged.cachedStatement(sql: sql), arguments: [number]),
            let read = try? DownloadRow(row)
        else { return nil }
        let (reader, download) = (RowReader(row: row), read.download)
        guard !download.source.isEmpty, (try? reader.integer(21)) == DownloadRow.identityHash(download.identity),
            (try? reader.text(22)) == DownloadRow.nameKey(download.name),
            let key = try? reader.text(23),
            key == DownloadRow.urlKey(download.source) || key == DownloadRow.plainURLKey(download.source)
        else { return nil }
        return read
    }

    private func entries(_ number: Int64, _ damaged: Database) -> [TimelineNote] {
        let sql = "SELECT time, kind, message FROM entries WHERE download = ? ORDER BY number"
        guard let rows = try? Row.fetchAll(damaged.cachedStatement(sql: sql), arguments: [number]) else { return [] }
        return rows.compactMap { row in
            let reader = RowReader(row: row)
            guard let time = try? reader.integer(0), let kind = try? reader.text(1), let message = try? reader.text(2)
            else { return nil }
            return TimelineNote(time: time, kind: kind, message: message)
        }
    }

    private func copyTable(_ table: String, _ columns: [String], _ damaged: Database, _ database: Database) throws {
        let names = columns.joined(separator: ", ")
        let marks = columns.map { _ in "?" }.joined(separator: ", ")
        guard let rows = try? Row.fetchCursor(damaged, sql: "SELECT \(names) FROM \(table)") else { return }
        while let row = try? rows.next() {
            let values = columns.indices.map { row[$0] as DatabaseValue }
            let reader = RowReader(row: row)
            // The next opening would refuse a number beyond the bound.
            guard columns.indices.allSatisfy({ !reader.isInteger($0) || (try? reader.bounded($0)) != nil }) else {
                continue
            }
            // A value of a damaged page may not fit the type of the column.
            try? database.execute(
                sql: "INSERT OR IGNORE INTO \(table) (\(names)) VALUES (\(marks))",
                arguments: StatementArguments(values))
        }
    }
}
