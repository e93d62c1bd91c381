/// Something a user should hear about: what happened and why.
package struct TransferNotice: Hashable, Sendable {
    /// How loud.
    package enum Level: String, Sendable {
        /// Good to know.
        case info
        /// Bytes were fetched again, or something could not be verified.
        case warning
    }

    /// A stable name for programs, such as `restarted`.
    package enum Kind: String, Sendable {
        /// Goes on with bytes that were there.
        case resumed
        /// Bytes were thrown away and the download starts over.
        case restarted
        /// An attempt failed and another follows.
        case retrying
        /// The server has not responded yet.
        case waiting
        /// The server limits connections or rate.
        case limited
        /// A URL of the file is asked no more.
        case sourceLeftOut
        /// A redirect was followed.
        case redirected
        /// One stream only, because ranges do not work there.
        case singleStream
        /// The length or the bytes could not be verified.
        case unverified
        /// Checksum equal.
        case verified
        /// Something about files on disk.
        case disk
        /// The finished download was already there.
        case alreadyFinished
    }

    /// How loud.
    package let level: Level
    /// What.
    package let kind: Kind
    /// One sentence, without secrets and without raw bytes of a server.
    package let message: String

    /// Makes a notice.
    package init(_ level: Level, _ kind: Kind, _ message: String) {
        self.level = level
        self.kind = kind
        self.message = message
    }

    /// The bytes are what these say.
    package static func verified(_ checksums: [Checksum]) -> TransferNotice {
        let names = checksums.map(\.algorithm.rawValue).joined(separator: ", ")
        return TransferNotice(.info, .verified, "the file matches its checksum (\(names))")
    }

    /// The server's checksum does not match, and the user's own does.
    static func outranked(_ wrong: ServerChecksum?) -> TransferNotice {
        let name = wrong.map { " (\($0.field))" } ?? ""
        return TransferNotice(
            .warning, .verified,
            "the file matches the expected checksum. The checksum that the server sent\(name) does not match and is"
                + " ignored")
    }

    /// The length is what came, and nobody vouches for that; `nil` where the framing does.
    ///
    /// - Parameter isIgnored: the user does not want the server's length (`--ignore-length`).
    package static func withoutLength(
        _ count: Int64, _ framing: AttemptEnd.Framing, isIgnored: Bool
    ) -> TransferNotice? {
        let end: String
        switch framing {
        case .delimited: return nil
        case .stream:
            end = "the server ended the response after \(count) bytes (HTTP/2), apparently at the end of the file"
        case .unclosed:
            end =
                "the server ended the response after \(count) bytes without closing TLS (close_notify), apparently at the"
                + " end of the file"
        case .closed: end = "the server closed the connection after \(count) bytes, apparently at the end of the file"
        }
        let reason =
            isIgnored
            ? "Its Content-Length was ignored (--ignore-length)" : "The server did not send the length of the file"
        return TransferNotice(
            .warning, .unverified,
            "\(end). \(reason), so the downloaded file may be incomplete. Use --checksum to verify the file")
    }
}
