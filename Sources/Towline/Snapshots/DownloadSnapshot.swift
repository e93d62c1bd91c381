public import Foundation
public import TowlineCore

/// The state and progress of a download at one moment.
public struct DownloadSnapshot: Hashable, Sendable, Identifiable, Codable {
    /// The identifier of the download.
    public var id: DownloadID
    /// The URL, without user information and without the values of signature parameters.
    public var source: String
    /// The path of the destination directory.
    public var directory: String
    /// The final name of the file; `nil` while unknown.
    public var name: String?
    /// The state of the download, such as queued, downloading or finished.
    public var state: DownloadState
    /// The latest time when a waiting download is retried, accurate to a second; `nil` if the download does not wait,
    /// or is being retried.
    public var waitsUntil: Date?
    /// The reason why the download is queued, waits, was restarted or failed, as text; `nil` without such a reason. A
    /// download that a limit keeps queued names the limit, for example `limit: 3 per host`.
    public var reason: String?
    /// The error of a failed download; `nil` in every other state.
    public var error: TowlineError?
    /// The size of the complete file in bytes; `nil` while unknown.
    public var completeLength: Int64?
    /// The number of downloaded bytes that are kept, including bytes from before a pause or a relaunch.
    public var heldBytes: Int64
    /// The number of bytes received since this process last started the download, including bytes that were received
    /// more than once. The value stays after the end of the download. It is 0 if this process has not started the
    /// download, for example after a relaunch, or if more than 2000 downloads have ended since.
    public var receivedBytes: Int64
    /// The smoothed rate in bytes per second; `nil` while no bytes arrive.
    public var rate: Double?
    /// The estimated remaining time at the current rate; `nil` while unknown.
    public var remaining: Duration?
    /// The number of connections that the download uses now.
    public var connections: Int
    /// The priority; downloads with a higher number start first.
    public var priority: Int
    /// The group whose limits apply to the download; `nil` if the download has no group.
    public var group: String?
    /// The metadata that the caller added to the request, unchanged.
    public var metadata: [String: String]
    /// The time when the download was added.
    public var addedAt: Date
    /// The time when the download finished, failed or was cancelled; `nil` before.
    public var endedAt: Date?
    /// A Boolean value that indicates whether a pause keeps the downloaded bytes.
    ///
    /// `false` if a running download would start over after a pause, for example because its server does not support
    /// range requests. An app can ask the user before it pauses such a download.
    public var canPauseWithoutLoss: Bool
    /// The state of the follow-up actions, such as unpacking, that run after the download is finished.
    public var followUp: FollowUpState

    /// Creates the snapshot of a queued download without bytes, for previews and tests of an app. All properties can be
    /// changed afterwards.
    public init(id: DownloadID, source: String, directory: String) {
        self.id = id
        self.source = source
        self.directory = directory
        state = .queued
        (heldBytes, receivedBytes, connections, priority) = (0, 0, 0, 0)
        canPauseWithoutLoss = true
        metadata = [:]
        addedAt = Date()
        followUp = .none
    }

    /// The downloaded fraction, 0 to 1; `nil` while the length is unknown.
    public var fractionCompleted: Double? {
        guard let completeLength else { return state == .finished ? 1 : nil }
        guard completeLength > 0 else { return state == .finished ? 1 : 0 }
        return min(1, Double(heldBytes) / Double(completeLength))
    }

    /// A name of the download for people: the name of the file; while that is unknown, the last path component of the
    /// URL, or its host. Control characters in the URL are replaced.
    public var displayName: String {
        name ?? TerminalSafeText.make((try? HTTPURL(parsing: source))?.displayName ?? source)
    }

    /// The final URL of the file; `nil` while the name is unknown.
    ///
    /// The file does not exist before the state is `finished`.
    public var file: URL? {
        name.map { URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent($0, isDirectory: false) }
    }

    /// A Boolean value that indicates whether the download is finished, failed or cancelled.
    public var isOver: Bool { state == .finished || state == .failed || state == .cancelled }
}

/// The state of the follow-ups of a finished download.
public enum FollowUpState: Hashable, Sendable, Codable {
    /// The download has no follow-ups or is not finished.
    case none
    /// The follow-up with this index, counted from 0, is running.
    case running(Int)
    /// All follow-ups of the download succeeded.
    case done
    /// The follow-up with this index, counted from 0, failed with this reason.
    case failed(Int, String)
}
