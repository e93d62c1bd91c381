/// The handling of servers that make the transfer wait.
extension TransferStateMachine {
    /// Returns an error if `wait`, which the server at `url` asks for, is longer than the user accepts (`--max-wait`);
    /// otherwise `nil`.
    func tooLong(_ wait: Duration, _ url: HTTPURL) -> TowlineError? {
        guard let longest = terms.retry.longestWait, wait > longest else { return nil }
        return TowlineError(
            .transient,
            "\(url): the server asks for a pause of \(DurationText.inSentence(wait)) before the next request"
                + " (Retry-After). Run the same command again after that time, or use --max-wait to wait longer than"
                + " \(DurationText.inSentence(longest))")
    }

    /// The time without a response after which the user gets a notice that the transfer waits for the server.
    private static let silence = Duration.seconds(8)

    /// Notifies the user, once for each slow first response, that the transfer waits for it: a server may pack an
    /// archive before it responds.
    mutating func announceSilence(_ context: TransferContext) -> [TransferAction] {
        guard let attempt = live.first, liveCount == 1, !attempt.isAccepted, announcedSilence != attempt.id,
            context.now - attempt.startedAt >= Self.silence
        else { return [] }
        announcedSilence = attempt.id
        let limit = DurationText.inSentence(terms.headTimeout)
        let text =
            "the server has not responded for \(DurationText.inSentence(Self.silence)). Waiting for its response, once"
            + " connected for up to \(limit) (--head-timeout)"
        return [.notice(TransferNotice(.info, .waiting, text))]
    }

    /// Returns the time without a byte after which an attempt counts as stalled; `nil` if only the limits of the
    /// transport (the HTTP client) apply.
    ///
    /// Connecting and the response head have limits of their own, which the transport keeps: a slow handshake or a
    /// server that packs an archive is not a stalled connection. While others deliver bytes, a further connection has
    /// at least the time for connecting: a request for its bytes elsewhere is better than a longer wait. A request in
    /// libcurl's queue for a shared connection has no limit of its own.
    func patience(for attempt: Attempt, _ context: TransferContext) -> Duration? {
        if attempt.isAccepted || attempt.plan.sharesConnection { return terms.stallTimeout }
        let others = workingCount(context, besides: attempt.id)
        return others > 0 ? max(terms.stallTimeout, terms.connectTimeout) : nil
    }
}
