internal import Foundation
internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// An error: a value in the database that this program cannot have written.
struct DamagedRow: Error {}

/// A reader of untrusted values of a row. Throws for a value of an unexpected type, and never traps.
struct RowReader {
    let row: Row

    func integer(_ index: Int) throws -> Int64 {
        guard let value = Int64.fromDatabaseValue(row[index]) else { throw DamagedRow() }
        return value
    }

    func optionalInteger(_ index: Int) throws -> Int64? {
        row.hasNull(atIndex: index) ? nil : try integer(index)
    }

    func isInteger(_ index: Int) -> Bool {
        if case .int64 = (row[index] as DatabaseValue).storage { true } else { false }
    }

    /// Returns a number below `bound`, so that the sum or difference of two cannot overflow. Throws for a larger
    /// number.
    func bounded(_ index: Int) throws -> Int64 {
        let value = try integer(index)
        guard value.magnitude <= RowReader.bound else { throw DamagedRow() }
        return value
    }

    /// The maximum magnitude of times, places in the queue, counts and sums.
    static let bound: UInt64 = 1 << 61

    func text(_ index: Int) throws -> String {
        guard case .string(let value) = (row[index] as DatabaseValue).storage else { throw DamagedRow() }
        return value
    }

    func optionalText(_ index: Int) throws -> String? {
        row.hasNull(atIndex: index) ? nil : try text(index)
    }

    func bytes(_ index: Int) throws -> Data {
        guard case .blob(let value) = (row[index] as DatabaseValue).storage else { throw DamagedRow() }
        return value
    }
}

/// A download and its place in the table.
struct DownloadRow {
    var number: Int64
    var place: Int64
    var download: RegisteredDownload

    /// The columns that `init(_:)` reads, in this order.
    static let columns = """
        number, id, rank, place, state, complete_length, held_bytes, added_at, ended_at, wait_until, status, "group", \
        host, name, directory, reason_code, reason, source, identity, metadata, options
        """

    init(_ row: Row) throws {
        let reader = RowReader(row: row)
        guard let id = DownloadID(bytes: try reader.bytes(1)),
            let rank = Int(exactly: try reader.integer(2)), rank != .min,
            let state = Int(exactly: try reader.integer(4)).flatMap(RegisteredState.init(number:))
        else { throw DamagedRow() }
        number = try reader.integer(0)
        place = try reader.bounded(3)
        download = RegisteredDownload(
            id: id, source: try reader.text(17), host: try reader.text(12), directory: try reader.text(14),
            name: try reader.optionalText(13), identity: try reader.text(18), options: Array(try reader.bytes(20)),
            metadata: try DownloadRow.metadata(try reader.text(19)), group: try reader.optionalText(11),
            priority: -rank, state: state, addedAt: try reader.bounded(7))
        let completeLength = try reader.integer(5)
        download.completeLength = completeLength < 0 ? nil : completeLength
        download.heldBytes = try reader.integer(6)
        guard download.heldBytes >= 0 else { throw DamagedRow() }
        let endedAt = try reader.bounded(8)
        download.endedAt = endedAt < 0 ? nil : endedAt
        download.waitUntil = row.hasNull(atIndex: 9) ? nil : try reader.bounded(9)
        download.status = try reader.optionalInteger(10).flatMap { Int(exactly: $0) }
        download.reasonCode = try reader.optionalText(15)
        download.reason = try reader.optionalText(16)
    }

    /// Adds a download at the end of the table.
    /// - Returns: `false` if the table already contains a download with this name.
    static func insert(
        _ download: RegisteredDownload, place: Int64, into database: Database, _ totals: inout TotalsSum
    ) throws -> Bool {
        let statement = try database.cachedStatement(
            sql: """
                INSERT INTO downloads (id, rank, place, state, complete_length, held_bytes, added_at, \
                ended_at, wait_until, status, "group", host, name, directory, reason_code, reason, source, identity, \
                metadata, options, identity_hash, name_key, url_key) \
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        statement.setUncheckedArguments([
            Data(download.id.bytes), rank(download.priority), place, download.state.number,
            download.completeLength ?? -1, max(0, download.heldBytes), download.addedAt, download.endedAt ?? -1,
            download.waitUntil, download.status, download.group, download.host, download.name, download.directory,
            download.reasonCode, download.reason, download.source, download.identity,
            try text(download.metadata), Data(download.options), identityHash(download.identity),
            nameKey(download.name), urlKey(download.source),
        ])
        do {
            try statement.execute()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            return false
        }
        totals.add(download)
        return true
    }

    static func rank(_ priority: Int) -> Int { priority == .min ? .max : -priority }
    static func nameKey(_ name: String?) -> String { name?.lowercased() ?? "" }

    /// Returns the URL without its secrets, in lower case, and the last component of its path, percent-decoded: the web
    /// page shows that component until the name of the file is known. Empty for an invalid URL.
    static func urlKey(_ source: String) -> String {
        let plain = plainURLKey(source)
        let shown = (try? HTTPURL(parsing: source)).flatMap { try? HTTPURL(parsing: $0.withoutSecrets) }
        guard let name = shown?.lastPathComponent?.lowercased().precomposedStringWithCanonicalMapping,
            !plain.contains(name)
        else { return plain }
        return plain + "\n" + name
    }

    /// Returns the URL without its secrets, in lower case; empty for an invalid URL. Older versions store this key.
    static func plainURLKey(_ source: String) -> String {
        // A text that is not a valid URL could contain a secret anywhere.
        (try? HTTPURL(parsing: source))?.withoutSecrets.lowercased() ?? ""
    }

    /// Returns the 64-bit FNV-1a hash of an identity. The hash only finds candidates, whose identities are then
    /// compared.
    static func identityHash(_ identity: String) -> Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in identity.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int64(bitPattern: hash)
    }

    static func text(_ metadata: [String: String]) throws -> String {
        if metadata.isEmpty { return "" }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(metadata), as: UTF8.self)
    }

    static func metadata(_ text: String) throws -> [String: String] {
        if text.isEmpty { return [:] }
        guard let metadata = try? JSONDecoder().decode([String: String].self, from: Data(text.utf8)) else {
            throw DamagedRow()
        }
        return metadata
    }
}
