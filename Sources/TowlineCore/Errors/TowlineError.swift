/// An error of a download.
///
/// `code` is for programs, `message` is for people. A message names the affected file or URL, and contains no secrets
/// and no unescaped bytes from a server.
public struct TowlineError: Error, Hashable, Sendable {
    /// The kind of error, such as `diskFull` or `notFound`, for programs.
    public let code: Code
    /// A description: what happened, the file or URL, the reason, and what the user can do.
    ///
    /// The text starts in lower case and has no full stop at the end.
    public let message: String
    /// The HTTP status of the server's response; `nil` if no response caused the error.
    public let status: Int?
    /// The system error number (`errno`) of a failed system call; `nil` if none failed.
    public let systemError: Int32?
    /// The failure of the network or of a server that caused the error; `nil` if there is another cause.
    public let networkFailure: NetworkFailure?
    /// The order with which the user can get what the error prevented; `nil` if no such order is known.
    package var order: Order?
    /// The names of the fields of a request that cannot be applied to an existing download, as in the HTTP API; empty
    /// for other errors.
    public package(set) var fields: [String] = []

    /// Creates an error. `message` must contain no secrets and no unescaped bytes from a server.
    public init(
        _ code: Code, _ message: String, status: Int? = nil, systemError: Int32? = nil,
        networkFailure: NetworkFailure? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status
        self.systemError = systemError
        self.networkFailure = networkFailure
    }
}

extension TowlineError {
    /// An order that a program can show as its own command. Indirect: an error is small.
    package indirect enum Order: Hashable, Sendable {
        /// Replace the file at `path`, whose name the server chose, with the file at `url`, a URL without secrets.
        case replace(path: String, url: String, ExistingPolicy)
    }

    /// Returns this error with another message.
    package func with(message: String) -> TowlineError {
        var error = TowlineError(
            code, message, status: status, systemError: systemError, networkFailure: networkFailure)
        error.order = order
        return error
    }
}

extension TowlineError {
    /// The kinds of error. New kinds can be added without breaking existing clients.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Base: String {
            case unusableURL, unusableHeader, unusableDestination, unusableOption
            case destinationExists, destinationBusy
            case diskFull, diskPermission, diskFailure
            case unsupportedJournal
            case changedOnServer, checksumMismatch
            case refusedByServer, notFound, redirectRefused, untrustedServer, addressRefused, invalidResponse
            case fileTooLarge
            case transient, lengthUnproven
            case archiveRefused, archiveDamaged, commandFailed, webhookFailed
            case cancelled
            case unknownDownload, illegalTransition, closed
            case registryBusy, registryFailure, unsupportedRegistry
            case followUpFailed
            case optionConflict
        }
        private let base: Base
        private init(_ base: Base) { self.base = base }

        /// Creates the error code whose stable name, as in `description`, is `name`. Returns `nil` for an unknown name.
        package init?(name: String) {
            guard let base = Base(rawValue: name) else { return nil }
            self.base = base
        }

        /// The stable name of the code, as printed by `--json`.
        public var description: String { base.rawValue }

        /// The URL is invalid: not http or https, no host, a control character, or a port out of range.
        public static let unusableURL = Code(.unusableURL)
        /// A header given by the user is invalid: no name, a control character, or a header that Towline sets itself.
        public static let unusableHeader = Code(.unusableHeader)
        /// The destination directory does not exist, is not a directory, or is a symbolic link that is not followed.
        public static let unusableDestination = Code(.unusableDestination)
        /// The value of an option is invalid.
        public static let unusableOption = Code(.unusableOption)
        /// A file with the final name already exists and does not belong to this download.
        public static let destinationExists = Code(.destinationExists)
        /// The destination is in use by another download or another process.
        public static let destinationBusy = Code(.destinationBusy)
        /// The disk is full or the quota is exceeded. The bytes downloaded so far are kept.
        public static let diskFull = Code(.diskFull)
        /// Permission denied for creating, writing or renaming a file, or the file system is read-only.
        public static let diskPermission = Code(.diskPermission)
        /// Reading, writing or syncing a file failed.
        public static let diskFailure = Code(.diskFailure)
        /// The journal, the file that records the valid bytes of a part file, was written by a newer version of
        /// Towline. The journal is left unchanged.
        public static let unsupportedJournal = Code(.unsupportedJournal)
        /// The file changed on the server, and the caller asked not to start over with the new version.
        public static let changedOnServer = Code(.changedOnServer)
        /// The downloaded file does not match its checksum. The file does not appear under its final name.
        public static let checksumMismatch = Code(.checksumMismatch)
        /// The server refused the request: 401, 403, 407, 410, 451 or another permanent status.
        public static let refusedByServer = Code(.refusedByServer)
        /// The file was not found on the server: 404.
        public static let notFound = Code(.notFound)
        /// A redirect was not followed: a loop, too many redirects, an invalid URL, or a change from https to http.
        public static let redirectRefused = Code(.redirectRefused)
        /// The server's certificate is not trusted.
        public static let untrustedServer = Code(.untrustedServer)
        /// The host name resolves to an address of this machine or a private network, and the download allows only
        /// public addresses.
        public static let addressRefused = Code(.addressRefused)
        /// The response is not valid HTTP or does not fit the request, and retrying does not help.
        public static let invalidResponse = Code(.invalidResponse)
        /// The file is longer than the caller allows.
        public static let fileTooLarge = Code(.fileTooLarge)
        /// The network or the server failed in all attempts. Starting the download again resumes it.
        public static let transient = Code(.transient)
        /// The response ended before its known length, or TLS ended without close_notify: the file may be incomplete.
        public static let lengthUnproven = Code(.lengthUnproven)
        /// The archive is encrypted, exceeds a limit, contains a forbidden kind of file, or would write outside its
        /// directory. No unpacked file was kept.
        public static let archiveRefused = Code(.archiveRefused)
        /// The archive has an unknown format or is damaged. No unpacked file was kept.
        public static let archiveDamaged = Code(.archiveDamaged)
        /// The command to run after the download could not be started, failed, or timed out.
        public static let commandFailed = Code(.commandFailed)
        /// The webhook to call after the download refused the message, or all attempts to call it failed.
        public static let webhookFailed = Code(.webhookFailed)
        /// The caller cancelled or interrupted the operation.
        public static let cancelled = Code(.cancelled)
        /// The download is not in the list of downloads, for example because it was removed.
        public static let unknownDownload = Code(.unknownDownload)
        /// The operation is not possible in the current state, such as pausing a finished download.
        public static let illegalTransition = Code(.illegalTransition)
        /// The downloader was closed and accepts no more requests.
        public static let closed = Code(.closed)
        /// Another process uses the directory that contains the list of downloads.
        public static let registryBusy = Code(.registryBusy)
        /// The list of downloads cannot be read or written.
        public static let registryFailure = Code(.registryFailure)
        /// The list of downloads was written by a newer version of Towline. The list is left unchanged.
        public static let unsupportedRegistry = Code(.unsupportedRegistry)
        /// An action after the download, such as moving the file, failed. The downloaded file is complete.
        public static let followUpFailed = Code(.followUpFailed)
        /// The list already contains the download, and some options of the new request cannot be applied to it.
        public static let optionConflict = Code(.optionConflict)
    }
}

extension TowlineError: Codable {
    private enum CodingKeys: String, CodingKey { case code, message, status, systemError, networkFailure }

    /// Decodes an error. A code or network failure of a newer version becomes `transient` or `nil`.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            Code(name: try values.decode(String.self, forKey: .code)) ?? .transient,
            try values.decode(String.self, forKey: .message),
            status: try values.decodeIfPresent(Int.self, forKey: .status),
            systemError: try values.decodeIfPresent(Int32.self, forKey: .systemError),
            networkFailure: try values.decodeIfPresent(String.self, forKey: .networkFailure)
                .flatMap { NetworkFailure(name: $0) })
    }

    /// Encodes the error with the names of its code and network failure.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(code.description, forKey: .code)
        try values.encode(message, forKey: .message)
        try values.encodeIfPresent(status, forKey: .status)
        try values.encodeIfPresent(systemError, forKey: .systemError)
        try values.encodeIfPresent(networkFailure?.description, forKey: .networkFailure)
    }
}

extension TowlineError: CustomStringConvertible {
    /// The text of the error, the same as `message`, for example for a log.
    public var description: String { message }
}
