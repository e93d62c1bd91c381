/// A redirect target that is still to be requested: its host has no free connection or asked for a pause, or a
/// first request for it over a shared connection did not succeed.
struct PendingRedirect: Sendable {
    let url: HTTPURL
    /// The URLs that redirected to `url`, in order.
    let chain: [HTTPURL]
    /// The time when the target was recorded.
    let since: Duration
    /// `true` until the next event. The context of the current event describes another host, so the target is not
    /// requested yet.
    var isNew = true

    /// The maximum age of a target. Signed links expire, so an older target is replaced by a new redirect.
    static let life = Duration.seconds(10)
}
