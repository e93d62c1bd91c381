/// The types of the HTTP API, shared by `towd` and `tow`.
///
/// Times are in milliseconds since 1970, lengths in bytes, rates in bytes per second. Unknown values are absent.
package enum Wire {
    /// Path prefix of the API.
    package static let base = "/api/v1"

    /// The state of a download.
    package enum State: String, Hashable, Sendable, Codable, CaseIterable {
        /// The states of `DownloadState`.
        case queued, connecting, downloading, verifying, publishing, finished, paused, waiting, failed, cancelled
        /// The file is complete, but a follow-up action failed.
        case followUpFailed = "follow-up-failed"

        /// True if the download has ended: finished, failed or cancelled.
        package var isOver: Bool { isComplete || self == .failed || self == .cancelled }

        /// True if the file is complete, also if a follow-up action failed.
        package var isComplete: Bool { self == .finished || self == .followUpFailed }
    }

    /// A download, as returned by the service.
    package struct Download: Hashable, Sendable, Codable {
        /// ID of the download.
        package var id: String
        /// URL, without secrets.
        package var url: String
        /// Directory of the file.
        package var directory: String
        /// File name; absent while unknown.
        package var name: String?
        /// State.
        package var state: State
        /// Why the download is queued or waits, as text.
        package var reason: String?
        /// Kind of wait: `retry`, `server`, `network`, `diskSpace` or `destination`.
        package var waitsFor: String?
        /// Latest end of the wait.
        package var waitsUntil: Int64?
        /// Error of a failed download.
        package var error: Failure?
        /// Complete length.
        package var completeLength: Int64?
        /// Bytes downloaded so far.
        package var heldBytes: Int64
        /// Bytes received over the network in this run.
        package var receivedBytes: Int64
        /// Bytes per second.
        package var rate: Int64?
        /// Estimated remaining time in seconds.
        package var remaining: Int64?
        /// Number of connections in use.
        package var connections: Int
        /// Priority; downloads with a higher priority start first.
        package var priority: Int
        /// Group, for limits by group.
        package var group: String?
        /// Metadata of the client, returned unchanged.
        package var metadata: [String: String]
        /// Time at which the download was added.
        package var addedAt: Int64
        /// Time at which the download ended.
        package var endedAt: Int64?
        /// Progress of the follow-up actions.
        package var followUp: FollowUp?
        /// False if a pause would lose the bytes downloaded so far; absent otherwise.
        package var canPauseWithoutLoss: Bool?
        /// Rate limit of this download. Included, like `mirrors`, only in responses for a single download.
        package var rateLimit: Int64?
        /// Mirror URLs of the file, without secrets.
        package var mirrors: [String]?

        /// Creates a download with the required fields only.
        package init(id: String, url: String, directory: String, state: State, addedAt: Int64) {
            self.id = id
            self.url = url
            self.directory = directory
            self.state = state
            self.addedAt = addedAt
            heldBytes = 0
            receivedBytes = 0
            connections = 0
            priority = 0
            metadata = [:]
        }
    }

    /// The error of a failed download.
    package struct Failure: Hashable, Sendable, Codable {
        /// Name of the `TowlineError.Code`.
        package var code: String
        /// Error message.
        package var message: String
        /// HTTP status of the server's response, if any.
        package var httpStatus: Int?
        /// Name of the `TowlineError.NetworkFailure` that caused the error, if any.
        package var networkFailure: String?

        /// Creates a value.
        package init(code: String, message: String, httpStatus: Int?, networkFailure: String? = nil) {
            self.code = code
            self.message = message
            self.httpStatus = httpStatus
            self.networkFailure = networkFailure
        }
    }

    /// The progress of the follow-up actions of a finished download.
    package struct FollowUp: Hashable, Sendable, Codable {
        /// State of the actions.
        package enum Progress: String, Hashable, Sendable, Codable {
            /// No actions; an action is running; all actions succeeded; an action failed.
            case none, running, done, failed
        }

        /// State of the actions.
        package var state: Progress
        /// Index of the running or failed action, from 0.
        package var number: Int?
        /// Why the action failed.
        package var reason: String?

        /// Creates a value.
        package init(_ state: Progress, number: Int? = nil, reason: String? = nil) {
            self.state = state
            self.number = number
            self.reason = reason
        }
    }

    /// An error response: problem details (RFC 9457).
    package struct Problem: Hashable, Sendable, Codable {
        /// `about:blank`, or `urn:towline:CODE`.
        package var type: String
        /// Short description of the problem type.
        package var title: String
        /// HTTP status.
        package var status: Int
        /// Description of this problem.
        package var detail: String?
        /// Name of the `TowlineError.Code`, if any.
        package var code: String?
        /// Names of the fields of the request that were not applied, if any.
        package var fields: [String]?

        /// Creates a value.
        package init(title: String, status: Int, detail: String? = nil, code: String? = nil, fields: [String]? = nil) {
            type = code.map { "urn:towline:" + $0 } ?? "about:blank"
            self.fields = fields
            self.title = title
            self.status = status
            self.detail = detail
            self.code = code
        }
    }

    /// The response of the health check.
    package struct Health: Hashable, Sendable, Codable {
        /// Always `ok`.
        package var status: String
        /// Version of `towd`.
        package var version: String

        /// Creates a value.
        package init(version: String) {
            status = "ok"
            self.version = version
        }
    }
}
