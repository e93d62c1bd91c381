import Glibc
internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// Opens, creates or repairs the files of the registry and returns the connections.
///
/// A database that is rebuilt has two temporary names: `registry.sqlite.rebuilding` while incomplete, and
/// `registry.sqlite.rebuilt` once complete and durable. If the process is killed, the next opening renames the latter.
struct RegistryOpening: Sendable {
    let directory: StateDirectory
    let migrator: DatabaseMigrator
    let rebuild: SQLiteRegistry.Rebuild

    static let invalidPage =
        "Towline rebuilt the list of downloads from its readable part and from journal files, "
        + "because a page of its file was invalid. Add missing downloads again"

    private var path: String { directory.database }
    private var rebuilding: String { path + ".rebuilding" }
    private var rebuilt: String { path + ".rebuilt" }

    /// Opens, creates or repairs the database. Returns the connections and the notices for the user.
    func open() throws(TowlineError) -> (Connections, [String]) {
        var notices: [String] = []
        removeRebuilding()
        if FileCall.exists(rebuilt) {
            let reason =
                "Towline finished an interrupted repair of the list of downloads. The list was rebuilt from its "
                + "readable part and from journal files. Add missing downloads again"
            notices.append(try putInPlace(reason))
        }
        // The log file exists from the first commit until the database is closed.
        let isLogLost = directory.wasLeftOpen && !FileCall.exists(directory.log)
        switch DatabaseFile(path: path).inspect() {
        case .database(let version) where version > RegistrySchema.version:
            throw TowlineError(
                .unsupportedRegistry,
                """
                \(path) was written by a newer version of Towline (schema \(version); this version supports schema \
                \(RegistrySchema.version)). The file was not changed. Use the newer version or another state directory
                """)
        case .database:
            return try openDatabase(isLogLost: isLogLost, notices)
        case .damaged(let reason):
            let (connections, more) = try replace(reason)
            return (connections, notices + more)
        case .absent where !directory.knownDirectories.isEmpty:
            let reason =
                LogFile(path: directory.log).read().frames > 0
                ? "Towline rebuilt the list of downloads from its write-ahead log and from journal files, because its "
                    + "file was missing. Add missing downloads again"
                : "Towline rebuilt the list of downloads from journal files because its file was missing. Only "
                    + "unfinished downloads were recovered, as paused. Resume them, and add other downloads again"
            let (connections, more) = try replace(reason)
            return (connections, notices + more)
        case .absent:
            // No download was ever added: these files are from a first start that was interrupted.
            try FileCall.remove(directory.log)
            return try openDatabase(isLogLost: false, notices)
        }
    }

    private func openDatabase(isLogLost: Bool, _ notices: [String]) throws(TowlineError) -> (Connections, [String]) {
        do {
            let connections = try connect()
            guard isLogLost else { return (connections, notices) }
            let (complaint, count) = try merge(into: connections)
            if let complaint {
                connections.close()
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: complaint)
            }
            return (
                connections,
                notices + [
                    "the write-ahead log \(directory.log) is missing. "
                        + "Changes made shortly before the last crash or kill may be lost. "
                        + "\(count) downloads were recovered, as paused, from their journal files (NAME.tow-journal). "
                        + "Check the list, and add missing downloads again"
                ]
            )
        } catch let error where RegistryFailure.isDamage(error) {
            let (connections, more) = try replace(Self.invalidPage)
            return (connections, notices + more)
        } catch {
            throw RegistryFailure.error(error, path)
        }
    }

    /// Sets the database aside and creates a new one from its readable rows and the journals. No connection may have
    /// the database open.
    func replace(_ reason: String) throws(TowlineError) -> (Connections, [String]) {
        do {
            defer { removeRebuilding() }
            removeRebuilding()
            try create(rebuilding)
            let template = try emptyDatabase(rebuilding)
            let writer = try DatabaseQueue(path: rebuilding, configuration: Connections.configuration(writes: true))
            let salvaged = try Salvage(path: path, copy: path + ".patched", firstPage: template).copy(to: writer)
            let found = try add(rebuild(directory.knownDirectories), to: writer)
            try closeWhole(writer, of: rebuilding)
            try FileCall.rename(rebuilding, to: rebuilt)
            try FileCall.synchronize(directory: directory.path)
            let notice = try putInPlace(reason)
            let counts = """
                \(salvaged) downloads were recovered from the damaged list and \(found) more, as paused, from their \
                journal files (NAME.tow-journal)
                """
            return (try connect(), ["\(notice). \(counts)"])
        } catch {
            throw RegistryFailure.error(error, path)
        }
    }

    /// Sets the old files aside and renames the rebuilt database. The log is first, because SQLite would apply a log to
    /// a different database beside it. Returns a notice.
    private func putInPlace(_ reason: String) throws(TowlineError) -> String {
        var number = 1
        while FileCall.exists(aside(number)) { number += 1 }
        let isThere = FileCall.exists(path)
        try FileCall.rename(directory.log, to: aside(number) + "-wal")
        try FileCall.rename(path, to: aside(number))
        try FileCall.remove(directory.sharedMemory)
        try FileCall.remove(path + "-journal")
        try FileCall.synchronize(directory: directory.path)
        try FileCall.rename(rebuilt, to: path)
        try FileCall.synchronize(directory: directory.path)
        let kept = isThere ? ". The earlier file was kept as \(aside(number))" : ""
        return "\(path): \(reason)\(kept)"
    }

    /// A file of the database while it is open.
    struct OpenFile {
        let identity: FileCall.Identity?
        /// The least size that the file keeps while only SQLite changes it, in bytes.
        let size: Int

        /// Returns whether this is the earlier file, and lost no byte that belongs to it.
        func isWhole(since earlier: OpenFile) -> Bool { identity == earlier.identity && size >= earlier.size }
    }

    /// The database, its log and its shared memory, in this order. SQLite never shrinks the database, because nothing
    /// runs VACUUM. It cuts the log to `logLimit` after a checkpoint.
    var files: [OpenFile] {
        [(path, Int.max), (directory.log, Connections.logLimit), (directory.sharedMemory, 0)].map { path, limit in
            OpenFile(identity: FileCall.identity(path: path), size: min(FileCall.size(path: path), limit))
        }
    }

    /// Writes a database whose files are no longer at their paths, or were truncated, again, complete, from its open
    /// connections, and closes them. Sets other files with these names aside. If it fails before the end, the
    /// connections stay open.
    ///
    /// - Throws: a damage error (`RegistryFailure.isDamage`) if the connections cannot read all of a truncated file.
    func rewrite(_ old: Connections) throws -> (Connections, [String]) {
        defer { removeRebuilding() }
        try directory.restore()
        removeRebuilding()
        try create(rebuilding)
        let writer = try DatabaseQueue(path: rebuilding, configuration: Connections.configuration(writes: true))
        try old.writer.backup(to: writer)
        // A page that a truncated file lost, and that is not in memory, has become zeros.
        guard try complaint(of: writer) == nil else { throw DamagedRow() }
        try closeWhole(writer, of: rebuilding)
        try FileCall.rename(rebuilding, to: rebuilt)
        try FileCall.synchronize(directory: directory.path)
        // Without the database, its log is of no use: the copy contains it.
        if !FileCall.exists(path) { try FileCall.remove(directory.log) }
        let notice = try putInPlace(
            "The list of downloads was written again, because its files were deleted, replaced or truncated while the "
                + "list was open. No download was lost")
        // Closed before the new files are opened: SQLite deletes the log by its path.
        old.close()
        return (try connect(), [notice])
    }

    /// Removes an incomplete database that an interrupted or failed repair left.
    private func removeRebuilding() {
        for suffix in ["", "-wal", "-shm", "-journal"] { try? FileCall.remove(rebuilding + suffix) }
    }

    private func aside(_ number: Int) -> String { path + ".damaged-\(number)" }

    private func create(_ path: String) throws(TowlineError) {
        // SQLite gives its log and shared memory the mode of the database.
        let file = try FileCall.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
        fchmod(file, 0o600)
        close(file)
    }

    /// Closes a database with all data in the main file, because only this file will be renamed.
    ///
    /// Merges the log explicitly, so that a full disk is an error. SQLite also merges the log on close, but reports no
    /// failure, and does not merge while another process reads the database.
    private func closeWhole(_ writer: DatabaseQueue, of path: String) throws {
        _ = try writer.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        guard FileCall.size(path: path + "-wal") == 0 else {
            throw TowlineError(
                .diskFailure,
                "cannot merge the write-ahead log \(path)-wal into \(path). "
                    + "Close other programs that use these files and try again")
        }
        try writer.close()
    }

    /// Fills a new database file with empty tables.
    /// - Returns: The first page of the file.
    private func emptyDatabase(_ path: String) throws -> [UInt8] {
        let writer = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: true))
        try migrator.migrate(writer)
        try closeWhole(writer, of: path)
        let file = try FileCall.open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        return FileCall.read(file, count: 4096, at: 0)
    }

    // MARK: Connecting

    private func connect() throws -> Connections {
        try create(path)
        for companion in [directory.log, directory.sharedMemory]
        where access(companion, R_OK | W_OK) != 0 && errno != ENOENT {
            throw FileCall.error("cannot open", companion, errno)
        }
        let connections = try Connections(path: path)
        do {
            // Removes the frames after the last commit, which a crash may leave in the log.
            _ = try connections.writer.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try migrator.migrate(connections.writer)
            try connections.writer.write { database in
                // A synced commit: from now on the log is on the disk.
                try database.execute(sql: "UPDATE process SET openings = (openings + 1) & 1073741823")
                try Probe.run(database)
            }
            readSmallList(connections)
            try directory.note("open")
            return connections
        } catch {
            connections.close()
            throw error
        }
    }

    /// Reads all pages of a small list, which stay in the cache of the writer: `rewrite` then needs no page of a file
    /// that another program truncated.
    private func readSmallList(_ connections: Connections) {
        guard FileCall.size(path: path) <= 8 << 20, let copy = try? DatabaseQueue() else { return }
        // A page that cannot be read is an error when it is needed.
        try? connections.writer.backup(to: copy)
    }

    /// Adds the downloads that only journals contain. If the integrity check fails, adds no download and returns
    /// SQLite's message as the complaint.
    private func merge(into connections: Connections) throws -> (complaint: String?, count: Int) {
        if let complaint = try complaint(of: connections.writer) { return (complaint, 0) }
        return (nil, try add(rebuild(directory.knownDirectories), to: connections.writer))
    }

    /// Returns SQLite's message about a damaged database; `nil` if all of it is sound.
    private func complaint(of writer: DatabaseQueue) throws -> String? {
        let result = try writer.read { try String.fetchOne($0, sql: "PRAGMA integrity_check(1)") }
        if result == "ok" { return nil }
        return result ?? "the list of downloads is damaged: its integrity check returned no result"
    }

    private func add(_ downloads: [RegisteredDownload], to writer: DatabaseQueue) throws -> Int {
        try directory.remember(Set(downloads.map(\.directory)))
        return try writer.write { database in
            let news = try Unlisted(downloads).fetch(database)
            return try DownloadTable.add(news, to: database).count { $0 == .added }
        }
    }
}

/// A quick check of each table and index at each opening. A full check would take a second for 100,000 downloads.
enum Probe {
    static func run(_ database: Database) throws {
        let names = try String.fetchSet(database, sql: "SELECT name FROM sqlite_schema")
        guard names.isSuperset(of: RegistrySchema.names) else { throw DamagedRow() }
        _ = try DownloadTable.totals(in: database)
        for order in DownloadQuery.Order.allCases {
            for descending in [false, true] {
                var query = DownloadQuery()
                (query.order, query.descending, query.limit) = (order, descending, 1)
                let page = try PageQuery(query, rare: nil)
                let row = try Row.fetchOne(database, sql: page.sql, arguments: page.arguments)
                _ = try row.map { try DownloadRow($0) }
            }
        }
        // The numbers of the next entry and host are greater than these, so these must be valid.
        for sql in [
            "SELECT max(number) FROM entries", "SELECT max(seq) FROM sqlite_sequence", "SELECT max(written) FROM hosts",
            "SELECT count(*) FROM settings", "SELECT openings FROM process",
        ] {
            guard let row = try Row.fetchOne(database, sql: sql), !row.hasNull(atIndex: 0) else { continue }
            _ = try RowReader(row: row).bounded(0)
        }
    }
}
