package import TowlineCore

/// The options of one download: its URL, its destination, and how to transfer the file. The properties of `transfer`
/// can also be read and set directly on this type.
@dynamicMemberLookup
package struct DownloadOptions: Sendable {
    /// The maximum number of mirrors of one download.
    package static let mostMirrors = 16

    /// Refuses mirrors over http for a file that is requested over https: anybody on the network path could replace
    /// their bytes. A checksum of the whole file proves the bytes, unless it can be forged (CRC-32C).
    ///
    /// - Throws: `unusableOption` if a mirror is refused.
    package func checkMirrors() throws(TowlineError) {
        guard url.scheme == .https, !transfer.allowsDowngrade, transfer.checksum?.isForgeable ?? true,
            let mirror = mirrors.first(where: { $0.scheme == .http })
        else { return }
        throw TowlineError(
            .unusableOption,
            "\(mirror.withoutSecrets): a mirror over http cannot be trusted for a file that is requested over https."
                + " \(Remedy.checksum.sentence) (sha256, for example), use an https mirror, or \(Remedy.unencrypted)"
        )
    }

    /// Returns whether the download may resume from bytes on disk that may belong to another file: a checksum of the
    /// whole file detects wrong bytes, or the user takes the risk (`allowsUnsafeResume`).
    var allowsUntrustedBytes: Bool { transfer.allowsUnsafeResume || !(transfer.checksum?.isForgeable ?? true) }

    /// `true` if the user states that an unfinished download is of the same file, or a checksum will show it.
    var vouchesForPart: Bool { transfer.checksum != nil || transfer.allowsUnsafeResume || ownsPart }

    /// `true` if the options name the file.
    var isNamed: Bool { if case .file(_, .some) = target { true } else { false } }

    /// Returns whether the user chose a file name: with an option, or as the last path component of the URL before any
    /// redirect (`nameOfURL`). Compares bytes: two names that differ in their Unicode normalization are two files.
    func isUsersName(_ name: String, nameOfURL: String) -> Bool {
        if name.utf8.elementsEqual(nameOfURL.utf8) { return true }
        guard case .file(_, let chosen?) = target else { return false }
        return !hasLearnedName && name.utf8.elementsEqual(chosen.utf8)
    }

    /// Returns whether bytes that an earlier run left may have come over http, although this download uses https and
    /// the user does not allow http.
    func isDowngrade(from record: DownloadRecord) -> Bool {
        guard url.scheme == .https else { return false }
        return record.source.hasPrefix("http://") || record.mayBePlain && !transfer.allowsDowngrade
    }

    /// Returns whether bytes of this run may come over http, without encryption, although the URL is https: from a
    /// mirror, or after a redirect.
    var mayBringPlainBytes: Bool {
        url.scheme == .https && (transfer.allowsDowngrade || mirrors.contains { $0.scheme == .http })
    }

    /// The destination of a download's bytes: a file or an output stream.
    package enum Target: Hashable, Sendable {
        /// A file in `directory`. `name` is one path component; `nil`: the name that the server or the URL gives.
        case file(directory: String, name: String?)
        /// An output that takes the bytes in order, from the first to the last.
        case stream(StreamOutput)

        /// Standard output.
        package static let standardOutput = Target.stream(.descriptor(1))

        /// Returns whether the target is an output stream, whose bytes are written in order and cannot be replaced
        /// later.
        var isStream: Bool { if case .stream = self { true } else { false } }
    }

    /// The URL of the file to download.
    package var url: HTTPURL
    /// Other URLs of the same file. Some byte ranges are requested from them, or all if the first URL fails; requests
    /// to them carry no credentials and none of the user's header fields.
    package var mirrors: [HTTPURL] = []
    /// The ID of the download in the list of a downloader, for its journal; `nil` without a list.
    package var download: DownloadID?
    /// The destination of the downloaded bytes: a file or an output stream.
    package var target: Target
    /// The options of the transfer, such as limits and checksums, which the command line, the library and the HTTP API
    /// share.
    package var transfer: TransferOptions
    /// The user's own header fields. They are sent to the origin of `url` only.
    package var userFields = HTTPFields()
    /// The connection settings, and the user's credentials, which are sent to the origin of `url` only.
    package var connection: ConnectionOptions
    /// `true` to wait until the file is on stable storage before the download counts as finished.
    package var durable = true
    /// `true` if the file name in `target` is one that an earlier run learned from the server, so that the user did not
    /// choose it.
    package var hasLearnedName = false
    /// `true` to resume an unfinished file under the same name even if it came from another URL, for example because
    /// the link was renewed.
    package var ownsPart = false
    /// The minimum time before a claimed change of the file is confirmed. Only tests need another time.
    package var confirmationWait = Duration.seconds(2)
    /// The action if the file changed on the server after bytes were downloaded.
    package var changed = ChangePolicy.restart
    /// `true` if the caller starts the transfer again after it failed with `transient`. Messages then do not count
    /// attempts up to a maximum that does not end the download.
    package var isRepeated = false
    /// `true` to reserve the disk space of the whole file at the start, so that a full disk is detected early.
    package var reservesSpace = true

    /// Creates the options of a download. If `transfer.usesHTTP1Only` is `true`, the connection uses HTTP/1.1 only.
    package init(
        url: HTTPURL, target: Target, transfer: TransferOptions = TransferOptions(),
        connection: ConnectionOptions = ConnectionOptions()
    ) {
        self.url = url
        self.target = target
        self.transfer = transfer
        self.connection = connection
        if transfer.usesHTTP1Only { self.connection.httpProtocol = .http1 }
    }

    /// Accesses an option of `transfer` as if it were a member of these options.
    package subscript<Value>(dynamicMember option: WritableKeyPath<TransferOptions, Value>) -> Value {
        get { transfer[keyPath: option] }
        set { transfer[keyPath: option] = newValue }
    }
}

/// An output that takes bytes in order only, such as a pipe.
package enum StreamOutput: Hashable, Sendable {
    /// The number of a file descriptor that was open when this process started.
    case descriptor(Int32)
    /// The path of a FIFO or a device.
    case path(String)
}
