import Dispatch
internal import GRDB

/// The connections to one database: one writer and two readers. Readers do not wait for the writer (WAL). A database in
/// memory has one connection for all three.
final class Connections: Sendable {
    let writer: DatabaseQueue
    /// The connection for quick reads.
    let reader: DatabaseQueue
    /// The connection for reads that may scan the whole list, so that quick reads do not wait for them.
    let searcher: DatabaseQueue

    /// The maximum wait in seconds for another program that has locked the database (a backup, a shell).
    static let patience = 600.0
    /// The size in bytes that the write-ahead log has at most after a checkpoint.
    static let logLimit = 16 << 20

    init(path: String) throws {
        writer = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: true))
        reader = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: false))
        searcher = try DatabaseQueue(path: path, configuration: Connections.configuration(writes: false))
    }

    /// Creates an empty database in memory, which is gone when the connection to it is closed.
    init() throws {
        writer = try DatabaseQueue(configuration: Connections.configuration(writes: true))
        (reader, searcher) = (writer, writer)
    }

    /// Closes the connections. The writer is the last, because it merges the write-ahead log into the database.
    ///
    /// Empties the log first: SQLite keeps the log if another program has opened the database.
    func close() {
        for queue in [searcher, reader] { try? queue.close() }
        try? emptyLogUnlessBusy()
        try? writer.close()
    }

    /// Merges the log into the database and empties the log. Throws `SQLITE_BUSY` if another connection reads from the
    /// log.
    func emptyLogUnlessBusy() throws {
        try writer.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA busy_timeout = 0")
            defer { try? database.execute(sql: "PRAGMA busy_timeout = \(Int(Self.patience * 1000))") }
            try database.checkpoint(.truncate)
        }
    }

    /// Returns the settings of a connection.
    ///
    /// Sets the journal mode directly, because GRDB would also reduce `synchronous` to NORMAL. A write that returned
    /// must survive a power loss, so each commit is synced.
    static func configuration(writes: Bool) -> Configuration {
        var configuration = Configuration()
        configuration.label = writes ? "registry.writer" : "registry.reader"
        configuration.readonly = !writes
        // GRDB's default is a higher class, which on Linux is a nice value that requires a privilege: libdispatch
        // would write a message to the system log for each thread.
        configuration.qos = .default
        configuration.foreignKeysEnabled = false
        // SQLite sleeps and retries, with increasing delays up to 0.1 seconds.
        configuration.busyMode = .timeout(patience)
        configuration.prepareDatabase { database in
            // In KiB: enough to add a million downloads in one transaction without writing pages early.
            try database.execute(sql: "PRAGMA cache_size = \(writes ? -24_000 : -4_000); PRAGMA temp_store = MEMORY")
            try database.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
            guard writes else { return }
            try database.execute(
                sql: """
                    PRAGMA secure_delete = ON;
                    PRAGMA synchronous = FULL;
                    PRAGMA journal_mode = WAL;
                    PRAGMA wal_autocheckpoint = 1000;
                    PRAGMA journal_size_limit = \(logLimit);
                    """)
        }
        return configuration
    }
}
