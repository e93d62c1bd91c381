/// The state and progress of a transfer, for display.
package struct TransferSnapshot: Hashable, Sendable {
    /// The state.
    package var state: DownloadState
    /// The final file name; `nil` while unknown.
    package var name: String?
    /// The complete length in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The number of written bytes, from this transfer and earlier ones.
    package var heldBytes: Int64
    /// The number of bytes that existed when this transfer began.
    package var resumedBytes: Int64
    /// The number of body bytes received in this transfer, repeated ones included.
    package var receivedBytes: Int64
    /// The rate in bytes per second, smoothed over the last seconds; `nil` while unknown.
    package var rate: Double?
    /// The time to the end at that rate; `nil` while unknown.
    package var remaining: Duration?
    /// The number of connections in use.
    package var connections: Int
    /// The way in which the transfer shared its connection with other transfers.
    package var sharing = ConnectionSharing.none
    /// The reason, in words, why another transfer could not resume with the written bytes; `nil` if none is known.
    package var startsOverBecause: String?
    /// The current wait; `nil` if the transfer does not wait.
    package var wait: Wait?

    /// A wait of a transfer.
    package struct Wait: Hashable, Sendable {
        /// The remaining time.
        package var remaining: Duration
        /// The reason, in words.
        package var reason: String

        /// Creates a wait.
        package init(remaining: Duration, reason: String) {
            self.remaining = remaining
            self.reason = reason
        }
    }

    /// Creates the snapshot of a transfer that has not begun.
    package init() {
        state = .queued
        heldBytes = 0
        resumedBytes = 0
        receivedBytes = 0
        connections = 0
    }

    /// The fraction of the file that is written, from 0 to 1; `nil` while the length is unknown.
    package var fractionCompleted: Double? {
        guard let completeLength else { return nil }
        return completeLength == 0 ? 1 : Double(heldBytes) / Double(completeLength)
    }
}
