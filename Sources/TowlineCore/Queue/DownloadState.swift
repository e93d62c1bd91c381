/// Where a download stands.
public enum DownloadState: Hashable, Sendable {
    /// Not begun, or waiting for its turn.
    case queued
    /// The first attempt of a transfer is on its way.
    case connecting
    /// Bytes arrive.
    case downloading
    /// All bytes are there; their checksum is being computed.
    case verifying
    /// The file is being made durable and given its name.
    case publishing
    /// The file is under its name.
    case finished
    /// Stopped by the user; everything is kept.
    case paused
    /// Goes on by itself when what it waits for is over.
    case waiting(WaitReason)
    /// Ended with an error; everything worth keeping is kept.
    case failed
    /// Given up by the user.
    case cancelled

    /// What a download waits for.
    public enum WaitReason: Hashable, Sendable {
        /// The next attempt after a failure.
        case retry
        /// The server said when to come back (`Retry-After`).
        case server
        /// A network that reaches the server.
        case network
        /// Room on the disk.
        case diskSpace
    }

    /// Whether a download may go from this state to that one.
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
