import TowlineCore
import TowlineEngine

/// The wait that a running download shows after a failure or a loss of the network, until bytes arrive. The transfer
/// alternates between connecting and waiting in this time, which readers of its state do not need to know.
struct Outage {
    /// The time without a byte after which a download shows that the network is unavailable. A download from a server
    /// on this machine receives bytes without a network.
    static let patience = Duration.seconds(1)
    static let noNetwork = "this machine has no network connection"
    static let reconnecting = "reconnecting to the server"

    /// The kind of the wait that the download shows (for the network or a retry); `nil` if bytes have arrived since the
    /// last failure.
    private(set) var wait: DownloadState.WaitReason?
    /// The reason for the wait, as text in messages to the user.
    private(set) var reason = Self.reconnecting
    private var receivedBytes: Int64 = 0
    private var lastByteAt: Duration

    /// Creates the record for a transfer that begins at the monotonic time `now`, with the wait that earlier transfers
    /// of the download have left.
    init(_ wait: DownloadState.WaitReason?, now: Duration) { (self.wait, lastByteAt) = (wait, now) }

    /// Returns the state that the download shows when its transfer reports `transfer`: a wait, from a failure until
    /// bytes arrive.
    mutating func state(
        _ transfer: TransferSnapshot, _ network: NetworkState, now: Duration
    ) -> DownloadState {
        if transfer.receivedBytes > receivedBytes {
            (receivedBytes, lastByteAt, wait) = (transfer.receivedBytes, now, nil)
        }
        switch transfer.state {
        case .waiting(.retry):
            let lacksNetwork = network == .unavailable || transfer.wait?.lacksNetwork ?? (wait == .network)
            wait = lacksNetwork ? .network : .retry
            reason = transfer.wait?.reason ?? reason
        case .connecting, .downloading:
            if network == .unavailable, now - lastByteAt >= Self.patience {
                (wait, reason) = (.network, Self.noNetwork)
            } else if network == .available, reason == Self.noNetwork {
                reason = Self.reconnecting
            }
        default: return transfer.state
        }
        return wait.map { .waiting($0) } ?? transfer.state
    }
}
