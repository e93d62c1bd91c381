/// The state that redirects leave in a transfer: a target that is still to be requested, and whether a redirect has led
/// away from https.
struct RedirectState: Sendable {
    /// The redirect target that is still to be requested; `nil` without one.
    var pending: PendingRedirect?
    /// `true` after a redirect from an https URL: later http requests use no netrc entry.
    var hasLeftTLS = false

    /// Chooses the URL and the connection (the route) of the request that follows a redirect, or records the target for
    /// later.
    ///
    /// - Parameters:
    ///   - isFirst: `true` if the redirect decides where the whole file is requested.
    ///   - mayShare: `true` if the next request may share a connection with other transfers.
    /// - Returns: the route of the next request; `nil` if the target must wait, because its host has no free connection
    ///   or asked for a pause.
    mutating func follow(
        _ plan: AttemptPlan, to target: HTTPURL, isFirst: Bool, mayShare: Bool, _ context: TransferContext
    ) -> SegmentPlanner.Route? {
        if plan.url.scheme == .https { hasLeftTLS = true }
        let chain = plan.chain + [plan.url]
        let sharing = isFirst && mayShare ? context.elsewhere.sharing : .none
        let isLeftAlone = context.elsewhere.notBefore ?? .zero > context.now
        if isFirst, isLeftAlone || sharing == .none && !context.elsewhere.mayConnect {
            pending = PendingRedirect(url: target, chain: chain, since: context.now)
            return nil
        }
        return SegmentPlanner.Route(url: target, chain: chain, sharing: sharing)
    }

    /// Removes the pending redirect target, and returns the route (URL and connection) of the first request for the
    /// whole file. An expired target is requested again from the first host, which `context` does not describe.
    mutating func takeFirst(sharing: ConnectionSharing, _ context: TransferContext) -> SegmentPlanner.Route {
        guard let led = pending.take() else { return SegmentPlanner.Route(sharing: sharing) }
        guard context.now - led.since < PendingRedirect.life else { return SegmentPlanner.Route() }
        return SegmentPlanner.Route(url: led.url, chain: led.chain, sharing: sharing)
    }
}
