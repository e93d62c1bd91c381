internal import GRDB

/// The tables and the migrations from older versions. `docs/registry.md` explains them.
///
/// Never edit a released migration. Add another migration and increase `version`.
enum RegistrySchema {
    /// The value of `PRAGMA user_version` in a database of this schema. A newer program writes a greater value.
    static let version = 2

    /// The list of migrations. Each one is a transaction: a kill leaves the tables before or after the migration.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: downloads)
            try database.execute(sql: indexes)
            try database.execute(sql: totals)
            try database.execute(sql: others)
            try database.execute(sql: "PRAGMA user_version = 1")
        }
        migrator.registerMigration("2") { database in
            // Version 1 stored a failed follow-up as a finished download (4) with a reason code.
            try database.execute(sql: "INSERT INTO totals (state) VALUES (7)")
            try database.execute(
                sql: "UPDATE downloads SET state = 7 WHERE state = 4 AND reason_code LIKE 'failed %'")
            try database.execute(sql: "PRAGMA user_version = 2")
        }
        return migrator
    }

    /// The names of tables, indexes and triggers that must exist; otherwise the database is damaged.
    static let names: Set<String> = [
        "downloads", "entries", "settings", "hosts", "totals", "process",
        "downloads_id", "downloads_identity", "downloads_queue", "downloads_added", "downloads_name", "downloads_size",
        "downloads_state", "downloads_ended", "downloads_group", "downloads_queued_host", "entries_download",
        "downloads_deleted", "downloads_updated",
    ]

    /// The table of downloads. `rank` is the negated priority, so that one ascending index serves the queue in both
    /// directions. `name_key` and `url_key` are in lower case, for order and search; `url_key` is without secrets. -1
    /// means an unknown length or end, so that keys are never NULL and pages can continue after them.
    private static let downloads = """
        CREATE TABLE downloads (
            number INTEGER PRIMARY KEY,
            id BLOB NOT NULL,
            rank INTEGER NOT NULL,
            place INTEGER NOT NULL,
            state INTEGER NOT NULL,
            complete_length INTEGER NOT NULL,
            held_bytes INTEGER NOT NULL,
            added_at INTEGER NOT NULL,
            ended_at INTEGER NOT NULL,
            wait_until INTEGER,
            status INTEGER,
            identity_hash INTEGER NOT NULL,
            name_key TEXT NOT NULL,
            url_key TEXT NOT NULL,
            "group" TEXT,
            host TEXT NOT NULL,
            name TEXT,
            directory TEXT NOT NULL,
            reason_code TEXT,
            reason TEXT,
            source TEXT NOT NULL,
            identity TEXT NOT NULL,
            metadata TEXT NOT NULL,
            options BLOB NOT NULL
        ) STRICT;
        """

    /// An index for each order. Rows with equal keys are ordered by `number`, which SQLite appends to each index.
    private static let indexes = """
        CREATE UNIQUE INDEX downloads_id ON downloads (id);
        CREATE INDEX downloads_identity ON downloads (identity_hash);
        CREATE INDEX downloads_queue ON downloads (rank, place);
        CREATE INDEX downloads_added ON downloads (added_at);
        CREATE INDEX downloads_name ON downloads (name_key);
        CREATE INDEX downloads_size ON downloads (complete_length);
        CREATE INDEX downloads_state ON downloads (state, rank, place);
        CREATE INDEX downloads_ended ON downloads (ended_at);
        CREATE INDEX downloads_group ON downloads ("group", rank, place) WHERE "group" IS NOT NULL;
        CREATE INDEX downloads_queued_host ON downloads (host, "group", rank, place) WHERE state = 0;
        """

    /// The sums by state, updated by triggers, so that no code can omit the update. `TotalsSum` alone adds new rows,
    /// once for many rows: a trigger would make SQLite keep a journal for each. The sums of the upper and lower halves
    /// of lengths cannot overflow, whatever length a server sends.
    private static let totals = """
        CREATE TABLE totals (
            state INTEGER PRIMARY KEY,
            count INTEGER NOT NULL DEFAULT 0,
            held_low INTEGER NOT NULL DEFAULT 0,
            held_high INTEGER NOT NULL DEFAULT 0,
            complete_low INTEGER NOT NULL DEFAULT 0,
            complete_high INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        INSERT INTO totals (state) VALUES (0), (1), (2), (3), (4), (5), (6);
        CREATE TRIGGER downloads_deleted AFTER DELETE ON downloads BEGIN
            \(subtracting("old"));
        END;
        CREATE TRIGGER downloads_updated AFTER UPDATE OF state, held_bytes, complete_length ON downloads BEGIN
            \(subtracting("old"));
            \(adding("new"));
        END;
        """

    private static func adding(_ row: String) -> String { summing(row, "+") }
    private static func subtracting(_ row: String) -> String { summing(row, "-") }
    private static func summing(_ row: String, _ sign: String) -> String {
        """
        UPDATE totals SET
            count = count \(sign) 1,
            held_low = held_low \(sign) (\(row).held_bytes & 4294967295),
            held_high = held_high \(sign) (\(row).held_bytes >> 32),
            complete_low = complete_low \(sign) (max(\(row).complete_length, 0) & 4294967295),
            complete_high = complete_high \(sign) (max(\(row).complete_length, 0) >> 32)
        WHERE state = \(row).state
        """
    }

    /// The other tables. Numbers of entries are never reused, so that "after this entry" stays valid after removals.
    private static let others = """
        CREATE TABLE entries (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            download INTEGER NOT NULL,
            time INTEGER NOT NULL,
            kind TEXT NOT NULL,
            message TEXT NOT NULL
        ) STRICT;
        CREATE INDEX entries_download ON entries (download);
        CREATE TABLE settings (
            name TEXT PRIMARY KEY NOT NULL,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE hosts (
            origin TEXT PRIMARY KEY NOT NULL,
            written INTEGER NOT NULL UNIQUE,
            knowledge TEXT NOT NULL
        ) STRICT;
        CREATE TABLE process (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            openings INTEGER NOT NULL
        ) STRICT;
        INSERT INTO process VALUES (1, 0);
        """
}
