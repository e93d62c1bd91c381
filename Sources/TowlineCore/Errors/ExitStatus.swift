/// The exit statuses of the command `tow`. They are stable, because scripts rely on them.
package enum ExitStatus: Int32, Sendable, CaseIterable {
    /// Every file is complete and synced to disk.
    case success = 0
    /// A download failed permanently, for a reason that no other status names.
    case failed = 1
    /// The command line is invalid.
    case usage = 2
    /// The network or the server failed in all attempts; run the command again to resume.
    case transient = 3
    /// The file changed on the server, and the user asked not to start over.
    case changedOnServer = 4
    /// The file does not match its checksum; the part file is kept as `NAME.tow-bad`.
    case checksumMismatch = 5
    /// The disk is full, permission is denied, or reading or writing failed.
    case disk = 6
    /// A file with the final name already exists.
    case destinationExists = 7
    /// The server refused the request: 401, 403, 404, 410 or a similar status.
    case refusedByServer = 8
    /// Another process uses this download or the list of downloads.
    case destinationBusy = 9
    /// The command was interrupted by SIGINT; all bytes are kept.
    case interrupted = 130
    /// The command was terminated by SIGTERM; all bytes are kept.
    case terminated = 143

    /// Creates the exit status of `tow` for a command that failed with `error`.
    package init(_ error: TowlineError) {
        switch error.code {
        case .unusableURL, .unusableHeader, .unusableOption: self = .usage
        case .destinationExists: self = .destinationExists
        case .destinationBusy, .registryBusy: self = .destinationBusy
        case .unusableDestination, .diskFull, .diskPermission, .diskFailure, .unsupportedJournal,
            .unsupportedRegistry:
            self = .disk
        case .changedOnServer: self = .changedOnServer
        case .checksumMismatch: self = .checksumMismatch
        case .refusedByServer, .notFound: self = .refusedByServer
        case .transient: self = .transient
        case .cancelled: self = .interrupted
        default: self = .failed
        }
    }
}
