/// The exit statuses of `tow`, a promise to scripts.
package enum ExitStatus: Int32, Sendable, CaseIterable {
    /// Everything is there and durable.
    case success = 0
    /// Some download failed for good.
    case failed = 1
    /// The command line makes no sense.
    case usage = 2
    /// The network or the server failed after all attempts; run again to go on.
    case transient = 3
    /// The file changed on the server and the user asked not to start over.
    case changedOnServer = 4
    /// The bytes are not the expected ones; the part file is kept as `NAME.tow-bad`.
    case checksumMismatch = 5
    /// Disk full, permission, read or write failure.
    case disk = 6
    /// Something is already under the final name.
    case destinationExists = 7
    /// The server refuses: 401, 403, 404, 410 and the like.
    case refusedByServer = 8
    /// Another process has this download.
    case destinationBusy = 9
    /// Interrupted by SIGINT; everything is kept.
    case interrupted = 130
    /// Interrupted by SIGTERM; everything is kept.
    case terminated = 143

    /// The status that tells of `error`.
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
