import Dispatch
internal import GRDB

/// The connections to one database: one that writes, two that read. Reading goes on while somebody writes (WAL).
final class Connections: Sendable {
    let writer: DatabaseQueue
    /// For what is quick.
    let reader: DatabaseQueue
    /// For what may walk the whole list, so that nothing quick waits for it.
    let searcher: DatabaseQueue

    /// How long to wait for another program that has the database locked (a backup, a shell).
    static let patience = 600.0

    init(path: String) throws {
        writer = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: true))
        reader = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: false))
        searcher = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: false))
    }

    /// The last one to close is the writer: it brings the log into the database.
    func close() {
        for queue in [searcher, reader, writer] { try? queue.close() }
    }

    /// Settings of a connection.
    ///
    /// The journal mode is set here and not by GRDB, which would turn `synchronous` down to NORMAL with it: what
    /// returned has to be there after a power loss, so each commit is synced.
    static func configuration(writes: Bool) -> Configuration {
        var configuration = Configuration()
        configuration.label = writes ? "registry.writer" : "registry.reader"
        configuration.readonly = !writes
        // GRDB's own choice is a higher one, which on Linux is a nice value that takes a privilege: libdispatch would
        // complain of each thread in the system's log.
        configuration.qos = .default
        configuration.foreignKeysEnabled = false
        // SQLite sleeps and tries again, ever more slowly up to ten times a second.
        configuration.busyMode = .timeout(patience)
        configuration.prepareDatabase { database in
            // Pages of 4 KiB: what adding a million downloads in one go needs to stay off the disk.
            try database.execute(sql: "PRAGMA cache_size = \(writes ? -24_000 : -4_000); PRAGMA temp_store = MEMORY")
            try database.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
            guard writes else { return }
            try database.execute(
                sql: """
                    PRAGMA secure_delete = ON;
                    PRAGMA synchronous = FULL;
                    PRAGMA journal_mode = WAL;
                    PRAGMA wal_autocheckpoint = 1000;
                    PRAGMA journal_size_limit = 16777216;
                    """)
        }
        return configuration
    }
}
