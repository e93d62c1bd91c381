/// The words of the service's API: what `towd` writes and `tow` reads, and the other way round.
///
/// Times are milliseconds since 1970, lengths bytes, rates bytes per second. What is unknown is left out.
package enum Wire {
    /// Where the API begins, in a URL.
    package static let base = "/api/v1"

    /// What a download does.
    package enum State: String, Hashable, Sendable, Codable, CaseIterable {
        /// As in `DownloadState`.
        case queued, connecting, downloading, verifying, publishing, finished, paused, waiting, failed, cancelled

        /// Whether nothing more happens by itself.
        package var isOver: Bool { self == .finished || self == .failed || self == .cancelled }
    }

    /// A download as the service tells of it.
    package struct Download: Hashable, Sendable, Codable {
        /// Its name.
        package var id: String
        /// Where from, without secrets.
        package var url: String
        /// The directory it goes to.
        package var directory: String
        /// The final name, once known.
        package var name: String?
        /// What it does.
        package var state: State
        /// Why it waits, in words.
        package var reason: String?
        /// What it waits for, by name: `retry`, `server`, `network` or `diskSpace`.
        package var waitsFor: String?
        /// Until when it waits at the latest.
        package var waitsUntil: Int64?
        /// What went wrong.
        package var error: Failure?
        /// Size of the whole.
        package var completeLength: Int64?
        /// Bytes that are there.
        package var heldBytes: Int64
        /// Bytes that came over the wire in this run.
        package var receivedBytes: Int64
        /// Bytes per second.
        package var rate: Int64?
        /// Seconds to the end at that rate.
        package var remaining: Int64?
        /// Connections in use.
        package var connections: Int
        /// Higher goes first.
        package var priority: Int
        /// The group it counts in.
        package var group: String?
        /// The caller's own.
        package var metadata: [String: String]
        /// When it was added.
        package var addedAt: Int64
        /// When it ended.
        package var endedAt: Int64?
        /// What follows it.
        package var followUp: FollowUp?
        /// Its own limit, in bytes per second. Told, as `mirrors` are, where one download is asked for.
        package var rateLimit: Int64?
        /// Other URLs of the file, without secrets.
        package var mirrors: [String]?

        /// A download of which little is known.
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

    /// What went wrong with a download.
    package struct Failure: Hashable, Sendable, Codable {
        /// The name of the `TowlineError.Code`.
        package var code: String
        /// One sentence.
        package var message: String
        /// What the server answered, where it did.
        package var httpStatus: Int?

        /// Makes one.
        package init(code: String, message: String, httpStatus: Int?) {
            self.code = code
            self.message = message
            self.httpStatus = httpStatus
        }
    }

    /// Where the follow-ups of a finished download stand.
    package struct FollowUp: Hashable, Sendable, Codable {
        /// How they go.
        package enum Progress: String, Hashable, Sendable, Codable {
            /// There are none; one is under way; all ended well; one failed.
            case none, running, done, failed
        }

        /// How they go.
        package var state: Progress
        /// Which is under way or failed, from 0.
        package var number: Int?
        /// Why it failed.
        package var reason: String?

        /// Makes one.
        package init(_ state: Progress, number: Int? = nil, reason: String? = nil) {
            self.state = state
            self.number = number
            self.reason = reason
        }
    }

    /// What a request was refused for (RFC 9457).
    package struct Problem: Hashable, Sendable, Codable {
        /// `about:blank`, or `urn:towline:CODE`.
        package var type: String
        /// What kind of problem it is.
        package var title: String
        /// The HTTP status.
        package var status: Int
        /// This one, in a sentence.
        package var detail: String?
        /// The name of the `TowlineError.Code`, where there is one.
        package var code: String?

        /// Makes one.
        package init(title: String, status: Int, detail: String? = nil, code: String? = nil) {
            type = code.map { "urn:towline:" + $0 } ?? "about:blank"
            self.title = title
            self.status = status
            self.detail = detail
            self.code = code
        }
    }

    /// That the service is there.
    package struct Health: Hashable, Sendable, Codable {
        /// `ok`.
        package var status: String
        /// The version of `towd`.
        package var version: String

        /// Makes one.
        package init(version: String) {
            status = "ok"
            self.version = version
        }
    }
}
