import Foundation
import TowlineCore
import TowlineEngine

/// Does what follows a finished download. Each call ends well or throws; cancelling its task ends it soon.
protocol FollowUpPerformer: Sendable {
    /// - Returns: where the file is afterwards, if it was moved.
    func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String?
}

/// A file that follow-ups are about.
struct FinishedFile: Hashable, Sendable {
    var id: DownloadID
    /// Where it is.
    var path: String
    /// Where it came from, without secrets.
    var source: String
    /// How long it is.
    var length: Int64
    /// When it was finished, in milliseconds since 1970; the same however often its follow-ups begin again.
    var endedAt: Int64
    /// What it hashes to, if that was asked for.
    var checksum: String?

    /// What the results of its follow-ups carry. The same download, fetched anew, has another.
    var receipt: String { "\(id) \(endedAt)" }
}

extension FollowUp {
    /// Whether it can be done at all.
    func check() throws(TowlineError) {
        switch self {
        case .unpack(let url), .move(let url), .run(let url, _, _):
            guard url.isFileURL else {
                let scheme = url.scheme ?? "(none)"
                throw TowlineError(
                    .unusableOption,
                    "this follow-up action needs the path of a local file (a file URL), but got a URL with the scheme "
                        + "\(scheme). Use URL(filePath:)")
            }
        case .notify(let url): _ = try HTTPURL(parsing: url.absoluteString)
        }
    }

    /// Describes the finished follow-up in words.
    var title: String {
        switch self {
        case .unpack(let directory): "unpacked into \(TerminalSafeText.make(directory.path))"
        case .move(let path): "moved to \(TerminalSafeText.make(path.path))"
        case .run(let program, _, _): "ran \(TerminalSafeText.make(program.path))"
        case .notify(let url): "notified \(url.host ?? "")"
        }
    }
}
