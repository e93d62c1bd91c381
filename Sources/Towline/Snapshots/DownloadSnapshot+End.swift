import Foundation
import TowlineCore

extension DownloadSnapshot {
    /// Returns the final URL of the file if the download is over, or `nil` while it is not.
    ///
    /// - Parameter includingFollowUps: `true` if a download with unfinished follow-ups is not over.
    /// - Throws: the error of a failed download; `followUpFailed` if a follow-up failed; `cancelled`.
    func end(includingFollowUps: Bool) throws(TowlineError) -> URL? {
        switch state {
        case .finished:
            guard includingFollowUps else { return file }
            switch followUp {
            case .none, .done: return file
            case .running: return nil
            case .failed(_, let reason): throw TowlineError(.followUpFailed, reason)
            }
        case .failed:
            throw error ?? TowlineError(.transient, "the download failed for an unknown reason. Start it again")
        case .cancelled: throw TowlineError(.cancelled, "the download was cancelled")
        case .queued, .connecting, .downloading, .verifying, .publishing, .waiting, .paused: return nil
        }
    }
}
