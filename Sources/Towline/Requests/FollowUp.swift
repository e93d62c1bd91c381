public import Foundation

/// An action that runs after a download is finished.
///
/// Follow-ups run in order. Each one starts after the previous one succeeded. The first one starts after the file is
/// verified and published. After a kill, the interrupted follow-up runs again; completed follow-ups are not repeated. A
/// failure is reported in the timeline and in ``DownloadSnapshot/followUp``, and the file is kept. ``Download/start()``
/// runs the failed follow-up again.
public enum FollowUp: Hashable, Sendable, Codable {
    /// Unpacks an archive (zip, tar, tar.gz, tar.xz or tar.zst) into a new directory.
    ///
    /// The directory must not exist yet. It appears under its name when it is complete. Nothing is written outside the
    /// directory and no link is followed. An archive that is too large when unpacked is refused.
    ///
    /// `deletesArchive` removes the archive afterwards. ``DownloadSnapshot/file`` is then the new directory, and the
    /// same request added again sends no request as long as the directory exists.
    case unpack(into: URL, deletesArchive: Bool = false)
    /// Moves the file to another path on the same file system. An existing file is not replaced.
    case move(to: URL)
    /// Runs a program with arguments, without a shell.
    ///
    /// The placeholders `{path}`, `{directory}`, `{name}` and `{url-without-secrets}` in arguments are replaced. An
    /// exit status other than 0 is a failure. The program is stopped after `timeout`. It runs in the directory
    /// `/`, and gets only a few variables of the environment, such as `PATH`, `HOME` and `LANG`.
    case run(program: URL, arguments: [String], timeout: Duration = .seconds(3600))
    /// Sends a POST request with a small JSON object to a URL.
    ///
    /// The request is sent at least once. The header field `Idempotency-Key` is the same in each repetition. Requires
    /// the package trait `Library`; in an app without libcurl, adding such a download throws `unusableOption`.
    case notify(URL)
}
