import Foundation
import TowlineCore
import TowlineEngine

/// A type that performs follow-ups of a finished download. Cancelling the task of a call ends the call soon.
protocol FollowUpPerformer: Sendable {
    /// Performs one follow-up and returns when it is complete. Throws the error to show to the user if it failed.
    ///
    /// - Returns: the new path of the file if the follow-up moved it or replaced it with a directory; `nil` otherwise.
    func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String?
}

/// A finished file and the data that its follow-up actions, such as unpacking, need.
struct FinishedFile: Hashable, Sendable {
    var id: DownloadID
    /// The absolute path of the file.
    var path: String
    /// The URL of the download, without secrets, for the arguments of programs and for notifications.
    var source: String
    /// The length of the file in bytes.
    var length: Int64
    /// The time when the download finished, in milliseconds since 1970. Follow-ups that run again after a kill get the
    /// same time.
    var endedAt: Int64
    /// The checksum that the request requires; `nil` if the request has no checksum.
    var checksum: Checksum?

    /// A text that is stored as an extended attribute on unpacked directories and moved files. A follow-up that runs
    /// again after a kill recognizes its own completed result by this text. A repeated download has another text.
    var receipt: String { Self.receipt(of: id, endedAt: endedAt) }

    /// The receipt of a download that finished at `endedAt`.
    static func receipt(of id: DownloadID, endedAt: Int64) -> String { "\(id) \(endedAt)" }
}

extension FollowUpState {
    /// Returns the number of follow-ups that are complete, of `count` in all.
    func completedCount(of count: Int) -> Int {
        switch self {
        case .none: 0
        case .running(let number), .failed(let number, _): number
        case .done: count
        }
    }
}

extension FollowUp {
    /// `true` if the follow-up deletes the downloaded file.
    var deletesFile: Bool { if case .unpack(_, deletesArchive: true) = self { true } else { false } }

    /// The path of the directory that is unpacked or of the moved file; `nil` for other follow-ups.
    var target: URL? {
        switch self {
        case .unpack(let url, _), .move(let url): url.standardizedFileURL
        case .run, .notify: nil
        }
    }

    /// Checks the URL of the follow-up. Throws `unusableURL` if the URL of `notify` is not a valid HTTP URL, and
    /// `unusableOption` if another URL is not a file URL or this build cannot send webhooks.
    func check() throws(TowlineError) {
        switch self {
        case .unpack(let url, _), .move(let url), .run(let url, _, _):
            guard url.isFileURL else {
                let scheme = url.scheme ?? "(none)"
                throw TowlineError(
                    .unusableOption,
                    "this follow-up action needs the path of a local file (a file URL), but got a URL with the scheme "
                        + "\(scheme). Use URL(filePath:)")
            }
        case .notify(let url):
            _ = try HTTPURL(parsing: url.absoluteString)
            #if !Library
                throw Self.noWebhooks
            #endif
        }
    }

    #if !Library
        /// The error of a webhook in an app that was built without libcurl, which sends webhooks.
        static let noWebhooks = TowlineError(
            .unusableOption,
            "cannot send a webhook: this app was built without libcurl. Build it with the package trait Library, or "
                + "remove the follow-up action")
    #endif

    /// A description of the completed follow-up for the timeline, such as `moved to /a/b`.
    var title: String {
        switch self {
        case .unpack(let directory, let deletesArchive):
            "unpacked into \(TerminalSafeText.make(directory.path))"
                + (deletesArchive ? "; the archive was deleted" : "")
        case .move(let path): "moved to \(TerminalSafeText.make(path.path))"
        case .run(let program, _, _): "ran \(TerminalSafeText.make(program.path))"
        case .notify(let url): "notified \(url.host ?? "")"
        }
    }
}
