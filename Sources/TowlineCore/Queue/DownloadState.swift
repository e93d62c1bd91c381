/// The state of a download.
public enum DownloadState: Hashable, Sendable {
    /// Not started, or waiting until other downloads finish.
    case queued
    /// The first request of a transfer was sent; no response has arrived yet.
    case connecting
    /// Bytes are being received.
    case downloading
    /// All bytes are downloaded; the checksum is being computed.
    case verifying
    /// The file is being synced to disk and renamed to its final name.
    case publishing
    /// The file is complete and has its final name.
    case finished
    /// Paused by the user. The bytes downloaded so far are kept.
    case paused
    /// Waiting for the given reason. The download continues automatically.
    case waiting(WaitReason)
    /// Ended with an error. The bytes downloaded so far are kept if the download can resume.
    case failed
    /// Cancelled by the user.
    case cancelled

    /// The reason why a download waits.
    public enum WaitReason: Hashable, Sendable {
        /// The delay before the next attempt after a failure.
        case retry
        /// The delay that the server requested (`Retry-After`).
        case server
        /// No network connection to the server.
        case network
        /// Not enough free disk space.
        case diskSpace
    }

    /// Returns whether a download may change from this state to `next`.
    public func canMove(to next: DownloadState) -> Bool {
        switch (self, next) {
        case (.finished, _), (.cancelled, _): false
        case (_, .cancelled), (_, .failed), (_, .paused): true
        case (.paused, .queued), (.paused, .connecting), (.failed, .queued), (.failed, .connecting): true
        case (.queued, .connecting): true
        case (.connecting, .downloading), (.connecting, .waiting), (.connecting, .verifying), (.connecting, .finished):
            true
        case (.downloading, .waiting), (.downloading, .verifying), (.downloading, .connecting): true
        case (.waiting, .connecting), (.waiting, .downloading), (.waiting, .waiting): true
        case (.verifying, .publishing), (.verifying, .connecting), (.publishing, .finished): true
        default: false
        }
    }
}
