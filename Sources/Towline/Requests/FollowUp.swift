public import Foundation

/// Something that follows a finished download, in order, each once the one before it has ended well.
///
/// A follow-up never begins before the file is verified and published. After a kill, the one that was under way begins
/// again; those that ended are not repeated. One that fails is in the timeline and in
/// ``DownloadSnapshot/followUp``; ``Download/retry()`` begins it again. The file stays as it is.
public enum FollowUp: Hashable, Sendable, Codable {
    /// Unpacks a zip, tar, tar.gz, tar.xz or tar.zst into a directory that must not exist yet. Nothing is written outside
    /// it, no link is followed, and an archive that unpacks to too much is refused; the directory appears whole.
    case unpack(into: URL)
    /// Moves the file to another path on the same file system; something that is there is not replaced.
    case move(to: URL)
    /// Runs a program with arguments: never a shell. In arguments, `{path}`, `{directory}`, `{name}` and
    /// `{url-without-secrets}` are replaced. Another exit status than 0 is a failure.
    case run(program: URL, arguments: [String], timeout: Double = 3600)
    /// Posts a small JSON object to a URL. Sent at least once: the header field `Idempotency-Key` is the same each time.
    case notify(URL)
}
