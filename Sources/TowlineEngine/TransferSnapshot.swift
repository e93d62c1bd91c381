package import TowlineCore

/// Where one transfer stands, for people to look at.
package struct TransferSnapshot: Hashable, Sendable {
    /// Its state.
    package var state: DownloadState
    /// The final name, once known.
    package var name: String?
    /// Size of the whole, once known.
    package var completeLength: Int64?
    /// Bytes that are there, from this transfer and earlier ones.
    package var heldBytes: Int64
    /// Bytes that were there when this transfer began.
    package var resumedBytes: Int64
    /// Body bytes that came over the wire in this transfer, repeated ones included.
    package var receivedBytes: Int64
    /// Bytes per second, smoothed over the last seconds; `nil` while unknown.
    package var rate: Double?
    /// Time to the end at that rate; `nil` while unknown.
    package var remaining: Duration?
    /// Connections in use.
    package var connections: Int
    /// While waiting: how long still, and why, in words.
    package var wait: Wait?

    /// A wait.
    package struct Wait: Hashable, Sendable {
        /// How long still.
        package var remaining: Duration
        /// Why, in words.
        package var reason: String

        /// Makes one.
        package init(remaining: Duration, reason: String) {
            self.remaining = remaining
            self.reason = reason
        }
    }

    /// The beginning.
    package init() {
        state = .queued
        heldBytes = 0
        resumedBytes = 0
        receivedBytes = 0
        connections = 0
    }

    /// 0 … 1, `nil` while the length is unknown.
    package var fractionCompleted: Double? {
        guard let completeLength else { return nil }
        return completeLength == 0 ? 1 : Double(heldBytes) / Double(completeLength)
    }
}

/// Something a user should hear about: what happened and why.
package struct TransferNotice: Hashable, Sendable {
    /// How loud.
    package enum Level: String, Sendable {
        /// Good to know.
        case info
        /// Bytes were fetched again, or something could not be verified.
        case warning
    }

    /// A stable name for programs, such as `restarted`.
    package enum Kind: String, Sendable {
        /// Goes on with bytes that were there.
        case resumed
        /// Bytes were thrown away and the download starts over.
        case restarted
        /// An attempt failed and another follows.
        case retrying
        /// The server limits connections or rate.
        case limited
        /// A redirect was followed.
        case redirected
        /// One stream only, because ranges do not work there.
        case singleStream
        /// The length or the bytes could not be verified.
        case unverified
        /// Checksum equal.
        case verified
        /// Something about files on disk.
        case disk
        /// The finished download was already there.
        case alreadyFinished
    }

    /// How loud.
    package let level: Level
    /// What.
    package let kind: Kind
    /// One sentence, without secrets and without raw bytes of a server.
    package let message: String

    /// Makes a notice.
    package init(_ level: Level, _ kind: Kind, _ message: String) {
        self.level = level
        self.kind = kind
        self.message = message
    }
}

/// How a transfer ended well.
package struct CompletedTransfer: Hashable, Sendable {
    /// What was made.
    package enum Outcome: Hashable, Sendable {
        /// The file was published by this transfer.
        case published(PublishedFile)
        /// The file was there already, whole; nothing was fetched.
        case alreadyThere(PublishedFile)
        /// Something was under the name and the user said to leave it.
        case skipped(path: String)
        /// Everything went to standard output.
        case streamed(length: Int64)
    }

    /// What was made.
    package let outcome: Outcome
    /// Bytes that came over the wire in this transfer.
    package let receivedBytes: Int64

    /// Makes one.
    package init(outcome: Outcome, receivedBytes: Int64) {
        self.outcome = outcome
        self.receivedBytes = receivedBytes
    }
}

/// What a transfer tells while it runs. Calls come from any thread, one at a time for one transfer, and must
/// return soon.
package protocol TransferObserver: AnyObject, Sendable {
    /// A few times a second, and whenever the state changes.
    func progressed(_ snapshot: TransferSnapshot)
    /// Something worth a sentence.
    func noticed(_ notice: TransferNotice)
}
