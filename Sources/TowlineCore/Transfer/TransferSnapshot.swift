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
    /// Whether the bytes came over a connection that other transfers share.
    package var sharing = ConnectionSharing.none
    /// Why another transfer could not go on with what is there, in words; `nil` if it could, as far as is known.
    package var startsOverBecause: String?
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
