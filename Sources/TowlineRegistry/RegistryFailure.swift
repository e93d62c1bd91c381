internal import GRDB
internal import TowlineCore

/// The classification of database errors, and their errors for callers.
enum RegistryFailure {
    /// Returns whether the error means a damaged database, so that a retry is useless.
    static func isDamage(_ error: any Error) -> Bool {
        if error is DamagedRow || error is RowDecodingError { return true }
        guard let error = error as? DatabaseError else { return false }
        return error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
            || error.resultCode == .SQLITE_FORMAT || error.extendedResultCode == .SQLITE_IOERR_SHORT_READ
            || changedCells.contains(error.extendedResultCode.rawValue)
    }

    /// The codes SQLITE_CONSTRAINT_NOTNULL and SQLITE_CONSTRAINT_DATATYPE. Values are bound with the type of their
    /// column, so only a cell that another program changed breaks these constraints, when its row is written again.
    private static let changedCells: Set<CInt> = [1299, 3091]

    /// Returns whether another connection holds a lock.
    static func isBusy(_ error: any Error) -> Bool { (error as? DatabaseError)?.resultCode == .SQLITE_BUSY }

    /// Returns whether the error concerns the database as a whole, not a single request.
    static func isOfDatabase(_ error: any Error) -> Bool { !(error is TowlineError) }

    static func error(_ error: any Error, _ path: String) -> TowlineError {
        if let error = error as? TowlineError { return error }
        if error is DamagedRow || error is RowDecodingError { return damaged(path) }
        guard let error = error as? DatabaseError else {
            return TowlineError(
                .diskFailure, "cannot use the list of downloads \(path): \(error). Check the disk and try again")
        }
        // SQLite's message, never the statement with its arguments, which may be secrets.
        let what = error.resultCode.description
        switch error.resultCode {
        case .SQLITE_FULL:
            return TowlineError(
                .diskFull,
                "cannot save the list of downloads \(path): no space is left on the disk. "
                    + "Free some space and try again")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            return TowlineError(
                .diskPermission,
                "cannot write to the list of downloads \(path): \(what). Check the permissions and try again")
        case .SQLITE_CANTOPEN:
            return TowlineError(
                .diskPermission,
                "cannot open the list of downloads \(path): \(what). Check the permissions and try again")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            return TowlineError(
                .registryBusy,
                "another program has locked the list of downloads \(path). Close that program and try again")
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: return damaged(path)
        default:
            return TowlineError(
                .diskFailure, "cannot use the list of downloads \(path): \(what). Check the disk and try again")
        }
    }

    static func closed(_ path: String) -> TowlineError {
        TowlineError(
            .diskFailure,
            "the list of downloads \(path) is closed because towd or the app is stopping. "
                + "Try again after the next start")
    }

    private static func damaged(_ path: String) -> TowlineError {
        TowlineError(.diskFailure, "the list of downloads \(path) is damaged. Restart towd or the app to repair it")
    }
}
