internal import GRDB
internal import TowlineCore
internal import TowlineEngine

/// The totals of new rows, added up in memory and written to the database once.
struct TotalsSum {
    private var sums: [RegisteredState: [Int64]] = [:]

    mutating func add(_ download: RegisteredDownload) {
        let (held, complete) = (max(0, download.heldBytes), max(0, download.completeLength ?? 0))
        let parts = [1, held & 0xFFFF_FFFF, held >> 32, complete & 0xFFFF_FFFF, complete >> 32]
        let sum = sums[download.state] ?? [0, 0, 0, 0, 0]
        sums[download.state] = zip(sum, parts).map { $0 + $1 }
    }

    func write(to database: Database) throws {
        for (state, sum) in sums {
            try database.execute(
                sql: """
                    UPDATE totals SET count = count + ?, held_low = held_low + ?, held_high = held_high + ?, \
                    complete_low = complete_low + ?, complete_high = complete_high + ? WHERE state = ?
                    """, arguments: StatementArguments(sum + [Int64(state.number)]))
        }
    }
}
