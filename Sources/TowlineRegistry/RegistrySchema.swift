internal import GRDB

/// The tables, and how older ones become these. `docs/registry.md` explains them.
///
/// A migration that was released is never edited: another one is added, and `version` with it.
enum RegistrySchema {
    /// What `PRAGMA user_version` says in a database of this schema. A greater one is a newer program's.
    static let version = 1

    /// All migrations. Each is one transaction: a kill leaves the tables as they were before or as they are after.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: downloads)
            try database.execute(sql: indexes)
            try database.execute(sql: totals)
            try database.execute(sql: others)
            try database.execute(sql: "PRAGMA user_version = 1")
        }
        return migrator
    }

    /// Names that must be there, or the database is damaged.
    static let names: Set<String> = [
        "downloads", "entries", "settings", "hosts", "totals", "process",
        "downloads_id", "downloads_identity", "downloads_queue", "downloads_added", "downloads_name", "downloads_size",
        "downloads_state", "downloads_ended", "downloads_group", "downloads_queued_host", "entries_download",
        "downloads_deleted", "downloads_updated",
    ]

    /// `rank` is the priority with its sign turned, so that one ascending index serves the queue in both directions.
    /// `name_key` and `url_key` are in lower case, for order and search; `url_key` is without secrets. -1 stands for
    /// an unknown length or end, so that keys are never NULL and pages can go on after them.
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

    /// An index for each order; ties go by `number`, which SQLite appends to each.
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

    /// Sums by state, kept by triggers, so that no path through the code can forget them; only `TotalsSum` adds for
    /// new rows, once for many: a trigger would make SQLite keep a journal for each. Lengths come from servers:
    /// sums of their upper and lower halves cannot overflow, whatever they claim.
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

    /// Numbers of entries are never used twice, so that "after this one" keeps its meaning when some are removed.
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
