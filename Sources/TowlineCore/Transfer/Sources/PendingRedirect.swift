/// A redirect target that is still to be requested: its host has no free connection or asked for a pause, or a
/// first request for it over a shared connection did not succeed.
struct PendingRedirect: Sendable {
    /// The redirect target: the URL to request.
    let url: HTTPURL
    /// The URLs that redirected to `url`, in order.
    let chain: [HTTPURL]
    /// The time when this redirect target was recorded.
    let since: Duration
    /// `true` until the next event of the transfer. The context of the current event (`TransferContext`) describes
    /// another host, so the target is not requested yet.
    var isNew = true

    /// The maximum age of a redirect target. Signed links expire, so an older target is replaced by a new redirect.
    static let life = Duration.seconds(10)
}
