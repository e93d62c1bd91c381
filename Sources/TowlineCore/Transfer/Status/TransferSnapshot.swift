/// The state and progress of a transfer, for display.
package struct TransferSnapshot: Hashable, Sendable {
    /// The state of the transfer, such as queued, downloading or finished.
    package var state: DownloadState
    /// The final name of the file; `nil` while unknown.
    package var name: String?
    /// The complete length of the file in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The number of written bytes, from this transfer and earlier ones.
    package var heldBytes: Int64
    /// The number of bytes of an earlier transfer that this one reuses.
    package var resumedBytes: Int64
    /// The number of body bytes received in this transfer, repeated ones included.
    package var receivedBytes: Int64
    /// The download rate in bytes per second, smoothed over the last seconds; `nil` while unknown.
    package var rate: Double?
    /// The estimated time until the last byte, at the current rate; `nil` while unknown.
    package var remaining: Duration?
    /// The number of connections that the transfer uses now.
    package var connections: Int
    /// The way in which the transfer shared its connection with other transfers, as of its last complete response.
    package var sharing = ConnectionSharing.none
    /// The reason, in words, why another transfer could not resume with the written bytes but would start over; `nil`
    /// if it could resume, or if no reason is known.
    package var startsOverBecause: String?
    /// The wait before the next request; `nil` if the transfer does not wait.
    package var wait: Wait?

    /// A wait of a transfer before its next request.
    package struct Wait: Hashable, Sendable {
        /// The remaining time of the wait before the next request.
        package var remaining: Duration
        /// The reason for the wait, in words.
        package var reason: String
        /// `true` if the last request failed on the network; `false` if the server answered.
        package var lacksNetwork = false
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
