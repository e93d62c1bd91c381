/// What went wrong with a download, in words a user can act on.
///
/// `code` is for programs, `message` for people. A message names the file or the URL concerned, never with its
/// secrets, and holds no raw byte from a server (see `TerminalSafeText`).
public struct TowlineError: Error, Hashable, Sendable {
    /// What kind of error it is.
    public let code: Code
    /// One sentence: what happened, to which file or URL, and what to do about it where that is not plain.
    public let message: String
    /// The HTTP status the server answered with, where one did.
    public let status: Int?
    /// The system's error number (`errno`), where a system call failed.
    public let systemError: Int32?

    /// Makes an error.
    public init(_ code: Code, _ message: String, status: Int? = nil, systemError: Int32? = nil) {
        self.code = code
        self.message = message
        self.status = status
        self.systemError = systemError
    }
}

extension TowlineError {
    /// The kinds of error. A struct around a private enum, so that kinds can be added without breaking a client.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Base: String {
            case unusableURL, unusableHeader, unusableDestination, unusableOption
            case destinationExists, destinationBusy
            case diskFull, diskPermission, diskFailure
            case unsupportedJournal
            case changedOnServer, checksumMismatch
            case refusedByServer, notFound, redirectRefused, untrustedServer, addressRefused, invalidResponse
            case transient, lengthUnproven
            case archiveRefused, archiveDamaged, commandFailed, webhookFailed
            case cancelled
            case unknownDownload, illegalTransition, closed
            case registryBusy, registryFailure, unsupportedRegistry
            case followUpFailed
        }
        private let base: Base
        private init(_ base: Base) { self.base = base }

        /// The code of that name, as `description` gives it.
        package init?(name: String) {
            guard let base = Base(rawValue: name) else { return nil }
            self.base = base
        }

        /// The code's name, stable: `--json` prints it.
        public var description: String { base.rawValue }

        /// The URL cannot be used: not http or https, no host, CR, LF or NUL inside, a port out of range.
        public static let unusableURL = Code(.unusableURL)
        /// A header given by the user holds CR, LF or NUL, or no name.
        public static let unusableHeader = Code(.unusableHeader)
        /// The place to put the file does not exist, is no directory, or is a link where none is followed.
        public static let unusableDestination = Code(.unusableDestination)
        /// An option's value makes no sense.
        public static let unusableOption = Code(.unusableOption)
        /// Something else is already under the final name.
        public static let destinationExists = Code(.destinationExists)
        /// Another process is at this download.
        public static let destinationBusy = Code(.destinationBusy)
        /// No space, or over quota. Everything that was fetched is kept.
        public static let diskFull = Code(.diskFull)
        /// Not allowed to create, write or rename there, or the file system is read-only.
        public static let diskPermission = Code(.diskPermission)
        /// Reading, writing or syncing failed.
        public static let diskFailure = Code(.diskFailure)
        /// The journal was written by a newer version; it is left untouched.
        public static let unsupportedJournal = Code(.unsupportedJournal)
        /// The file changed on the server and the caller asked not to start over.
        public static let changedOnServer = Code(.changedOnServer)
        /// The bytes are not the expected ones; nothing was published.
        public static let checksumMismatch = Code(.checksumMismatch)
        /// The server refuses: 401, 403, 407, 410, 451 and other permanent statuses.
        public static let refusedByServer = Code(.refusedByServer)
        /// The server has no such file: 404.
        public static let notFound = Code(.notFound)
        /// A redirect loops, leads to another scheme, or is one too many.
        public static let redirectRefused = Code(.redirectRefused)
        /// The server's certificate is not trusted, or TLS cannot be agreed on.
        public static let untrustedServer = Code(.untrustedServer)
        /// The name leads to an address of this machine or of a private network, and the download may go to public ones
        /// alone.
        public static let addressRefused = Code(.addressRefused)
        /// The response breaks HTTP, or contradicts what was asked, in a way that no further attempt mends.
        public static let invalidResponse = Code(.invalidResponse)
        /// The network or the server failed, and so did all further attempts. Running again goes on.
        public static let transient = Code(.transient)
        /// A body ended although a length was known, or TLS ended uncleanly: not proven whole.
        public static let lengthUnproven = Code(.lengthUnproven)
        /// The archive would write outside its directory, holds what no archive should bring, is encrypted, or is over
        /// a budget. Nothing of it was kept.
        public static let archiveRefused = Code(.archiveRefused)
        /// No archive of a known kind, or one that is cut off or contradicts itself. Nothing of it was kept.
        public static let archiveDamaged = Code(.archiveDamaged)
        /// The command after a download could not be run, failed, or took too long.
        public static let commandFailed = Code(.commandFailed)
        /// The webhook after a download was refused, or could not be reached in all tries.
        public static let webhookFailed = Code(.webhookFailed)
        /// The caller cancelled or interrupted.
        public static let cancelled = Code(.cancelled)
        /// No download of that name is in the list: it was removed.
        public static let unknownDownload = Code(.unknownDownload)
        /// What was asked of a download cannot be done in its state, such as pausing one that is finished.
        public static let illegalTransition = Code(.illegalTransition)
        /// The downloader was closed.
        public static let closed = Code(.closed)
        /// Another process has the state directory.
        public static let registryBusy = Code(.registryBusy)
        /// The list of downloads cannot be read or written.
        public static let registryFailure = Code(.registryFailure)
        /// The list of downloads was written by a newer version; it is left untouched.
        public static let unsupportedRegistry = Code(.unsupportedRegistry)
        /// What was to follow a finished download failed; the file is there.
        public static let followUpFailed = Code(.followUpFailed)
    }
}

extension TowlineError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
