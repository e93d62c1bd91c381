/// The state of a download.
public enum DownloadState: Hashable, Sendable {
    /// Not started, or waiting until other downloads finish.
    case queued
    /// A request was sent; no response to it has arrived, and no byte for a second.
    case connecting
    /// Bytes are being received, or were within the last second.
    case downloading
    /// The download of the bytes is complete; their checksum is being computed.
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
    public enum WaitReason: String, Hashable, Sendable, Codable {
        /// The server answered with an error. The state stays, also during further attempts, until bytes arrive.
        case retry
        /// The delay that the server requested (`Retry-After`).
        case server
        /// No network connection to the server. The state stays, also during further attempts, until bytes arrive.
        case network
        /// Not enough free disk space.
        case diskSpace
        /// The destination cannot be written to at present: the file system is read-only, the directory allows no new
        /// files, another download uses the file, or the disk of the directory is not mounted.
        case destination
    }
}

extension DownloadState: Codable, LosslessStringConvertible {
    /// The stable name of the state. A waiting download adds its reason: `waiting(network)`.
    public var description: String {
        switch self {
        case .queued: "queued"
        case .connecting: "connecting"
        case .downloading: "downloading"
        case .verifying: "verifying"
        case .publishing: "publishing"
        case .finished: "finished"
        case .paused: "paused"
        case .waiting(let reason): "waiting(\(reason.rawValue))"
        case .failed: "failed"
        case .cancelled: "cancelled"
        }
    }

    /// Creates the state with a name, as in `description`. Returns `nil` for an unknown name.
    public init?(_ description: String) {
        let waits = [WaitReason.retry, .server, .network, .diskSpace, .destination].map { DownloadState.waiting($0) }
        let others: [DownloadState] = [
            .queued, .connecting, .downloading, .verifying, .publishing, .finished, .paused, .failed, .cancelled,
        ]
        guard let state = (others + waits).first(where: { $0.description == description }) else { return nil }
        self = state
    }

    /// Decodes the name of a state.
    public init(from decoder: any Decoder) throws { self = try DownloadState.decoded(from: decoder) }

    /// Encodes the name of the state.
    public func encode(to encoder: any Encoder) throws { try encodeDescription(to: encoder) }
}
