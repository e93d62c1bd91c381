public import Foundation
public import TowlineCore

/// Where a download stands.
public struct DownloadSnapshot: Hashable, Sendable, Identifiable {
    /// Its name.
    public internal(set) var id: DownloadID
    /// Where from, without user information and without the values of signature parameters.
    public internal(set) var source: String
    /// The directory it goes to.
    public internal(set) var directory: String
    /// The final name, once known.
    public internal(set) var name: String?
    /// Its state.
    public internal(set) var state: DownloadState
    /// While waiting: when it goes on at the latest. `nil` otherwise.
    public internal(set) var waitsUntil: Date?
    /// Why it waits, was restarted or failed, in words.
    public internal(set) var reason: String?
    /// What went wrong, if it failed.
    public internal(set) var error: TowlineError?
    /// Size of the whole in bytes, once known.
    public internal(set) var completeLength: Int64?
    /// Bytes that are there, from earlier runs too.
    public internal(set) var heldBytes: Int64
    /// Bytes that came over the wire in this run, repeated ones included.
    public internal(set) var receivedBytes: Int64
    /// Bytes per second, smoothed; `nil` while none arrive.
    public internal(set) var rate: Double?
    /// Time to the end at that rate, `nil` while unknown.
    public internal(set) var remaining: Duration?
    /// Connections in use.
    public internal(set) var connections: Int
    /// Its priority.
    public internal(set) var priority: Int
    /// Its group.
    public internal(set) var group: String?
    /// What the caller gave with the request.
    public internal(set) var metadata: [String: String]
    /// When it was added.
    public internal(set) var addedAt: Date
    /// When it finished, failed or was cancelled.
    public internal(set) var endedAt: Date?
    /// Where what follows the download stands.
    public internal(set) var followUp: FollowUpState

    /// 0 … 1; `nil` while the length is unknown, never a nonsense value.
    public var fractionCompleted: Double? {
        guard let completeLength else { return state == .finished ? 1 : nil }
        guard completeLength > 0 else { return state == .finished ? 1 : 0 }
        return min(1, Double(heldBytes) / Double(completeLength))
    }

    /// The final path; nothing is there before the state is `finished`. `nil` while the name is unknown.
    public var file: URL? {
        name.map { URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent($0, isDirectory: false) }
    }

    /// Whether nothing more happens by itself.
    public var isOver: Bool { state == .finished || state == .failed || state == .cancelled }
}

/// Where the follow-ups of a finished download stand.
public enum FollowUpState: Hashable, Sendable {
    /// There are none, or the download is not finished.
    case none
    /// The one of that number, from 0, is under way.
    case running(Int)
    /// All ended well.
    case done
    /// The one of that number failed, for that reason.
    case failed(Int, String)
}
