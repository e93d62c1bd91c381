internal import GRDB
internal import TowlineCore

/// What errors of the database mean.
enum RegistryFailure {
    /// Whether the database is damaged, so that trying again is pointless.
    static func isDamage(_ error: any Error) -> Bool {
        if error is DamagedRow || error is RowDecodingError { return true }
        guard let error = error as? DatabaseError else { return false }
        return error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
            || error.resultCode == .SQLITE_FORMAT
    }

    /// Whether it concerns the database as a whole and not what was asked of it.
    static func isOfDatabase(_ error: any Error) -> Bool { !(error is TowlineError) }

    /// The error for the caller.
    static func error(_ error: any Error, _ path: String) -> TowlineError {
        if let error = error as? TowlineError { return error }
        if error is DamagedRow || error is RowDecodingError { return damaged(path) }
        guard let error = error as? DatabaseError else {
            return TowlineError(.diskFailure, "\(path): \(error)")
        }
        // SQLite's message, never the statement with its arguments: those may be secrets.
        let what = error.resultCode.description
        switch error.resultCode {
        case .SQLITE_FULL:
            return TowlineError(.diskFull, "\(path): no space is left; free some and go on")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            return TowlineError(.diskPermission, "\(path) cannot be written: \(what)")
        case .SQLITE_CANTOPEN:
            return TowlineError(.diskPermission, "\(path) cannot be opened: \(what)")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            return TowlineError(
                .registryBusy, "\(path): another program keeps the database locked; end it and go on")
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: return damaged(path)
        default: return TowlineError(.diskFailure, "\(path): \(what)")
        }
    }

    static func closed(_ path: String) -> TowlineError { TowlineError(.diskFailure, "\(path) is closed already") }

    private static func damaged(_ path: String) -> TowlineError {
        TowlineError(.diskFailure, "\(path) is damaged; close it and open it again to have it rebuilt")
    }
}
