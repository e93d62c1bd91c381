internal import Foundation
internal import GRDB
internal import TowlineCore

/// The places in the queue: ascending numbers within a priority, with gaps so that a free number almost always exists
/// between two places.
enum QueuePlace {
    /// The gap between two places when downloads are added: room for 2³³ additions, and for 30 moves to one position.
    static let gap: Int64 = 1 << 30

    /// Returns the place after the last download of a rank; 0 if the rank has no downloads.
    static func end(ofRank rank: Int, in database: Database) throws -> Int64 {
        let statement = try database.cachedStatement(sql: "SELECT max(place) FROM downloads WHERE rank = ?")
        guard let row = try Row.fetchOne(statement, arguments: [rank]), !row.hasNull(atIndex: 0) else { return 0 }
        return try RowReader(row: row).bounded(0) + gap
    }

    static func move(_ id: DownloadID, before: DownloadID?, in database: Database) throws {
        guard id != before, let number = try DownloadTable.number(of: id, in: database),
            let (rank, _) = try position(number, in: database)
        else { return }
        guard let before else {
            try put(number, at: try end(ofRank: rank, in: database), in: database)
            return
        }
        guard let target = try DownloadTable.number(of: before, in: database),
            let (targetRank, _) = try position(target, in: database)
        else { return }
        guard targetRank == rank else {
            throw TowlineError(
                .unusableOption,
                """
                cannot move download \(id) before \(before): their priorities differ. Give both the same priority first
                """)
        }
        var free = try placeBefore(target, rank, moving: number, in: database)
        if free == nil {
            try spread(from: target, rank, in: database)
            free = try placeBefore(target, rank, moving: number, in: database)
        }
        guard let free else { throw DamagedRow() }
        try put(number, at: free, in: database)
    }

    /// Returns the middle of the free places before the target; `nil` if no place is free.
    private static func placeBefore(_ target: Int64, _ rank: Int, moving: Int64, in database: Database) throws -> Int64?
    {
        guard let (_, place) = try position(target, in: database) else { return nil }
        let previous = try Row.fetchOne(
            database,
            sql: """
                SELECT place FROM downloads INDEXED BY downloads_queue \
                WHERE rank = ? AND place <= ? AND number <> ? AND number <> ? ORDER BY place DESC LIMIT 1
                """, arguments: [rank, place, target, moving])
        guard let previous = try previous.map({ try RowReader(row: $0).bounded(0) }) else { return place - gap }
        return place - previous >= 2 ? previous + (place - previous) / 2 : nil
    }

    /// Moves the target and the following downloads apart, until the average gap of the moved downloads is `gap` again.
    private static func spread(from target: Int64, _ rank: Int, in database: Database) throws {
        guard let (_, first) = try position(target, in: database) else { return }
        var count = 16
        while true {
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT number, place FROM downloads INDEXED BY downloads_queue \
                    WHERE rank = ? AND place >= ? ORDER BY place, number LIMIT ?
                    """, arguments: [rank, first, count + 1]
            ).map { (number: try RowReader(row: $0).integer(0), place: try RowReader(row: $0).bounded(1)) }
            let isAll = rows.count <= count
            let room = isAll ? Int64(rows.count + 1) * gap : (rows.last?.place ?? first) - first
            let step = room / Int64(rows.count + 1)
            guard isAll || step >= 1 << 10 else {
                count *= 4
                continue
            }
            // In reverse order, so that two downloads never share a place.
            let moved = isAll ? rows[...] : rows.dropLast()
            for (index, row) in moved.enumerated().reversed() {
                try put(row.number, at: first + step * Int64(index + 1), in: database)
            }
            return
        }
    }

    private static func position(_ number: Int64, in database: Database) throws -> (rank: Int, place: Int64)? {
        let row = try Row.fetchOne(
            database, sql: "SELECT rank, place FROM downloads WHERE number = ?", arguments: [number])
        guard let row else { return nil }
        let reader = RowReader(row: row)
        return (Int(try reader.integer(0)), try reader.bounded(1))
    }

    private static func put(_ number: Int64, at place: Int64, in database: Database) throws {
        try database.cachedStatement(sql: "UPDATE downloads SET place = ? WHERE number = ?")
            .execute(arguments: [place, number])
    }
}
