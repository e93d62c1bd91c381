package import TowlineCore
package import TowlineEngine
internal import TowlineThreads

/// Sends an HTTP POST with a small JSON object (a webhook) to a server to report an event of a download.
///
/// Delivers at least once: repeats a message that may not have arrived, with the same `Idempotency-Key`
/// (draft-ietf-httpapi-idempotency-key-header), until the server responds or all tries are used. Does not follow
/// redirects: the target of a redirect could read the message. Reads at most 64 KiB of the response's body.
package struct WebhookSender: Sendable {
    private let connection: ConnectionOptions
    private let retry: RetryPolicy
    private let timeout: Duration
    /// The longest `Retry-After` that is obeyed before the next try; a longer one is shortened to it.
    private static let longestWait = Duration.seconds(3600)

    /// Creates a sender with connection options and rules for retries.
    ///
    /// - Parameter timeout: the time limit for each try, from its start to the head of the response.
    package init(
        connection: ConnectionOptions = ConnectionOptions(), retry: RetryPolicy = RetryPolicy(maxTries: 8),
        timeout: Duration = .seconds(30)
    ) {
        self.connection = connection
        self.retry = retry
        self.timeout = timeout
    }

    /// Sends the webhook message, which reports an event of a download, and returns when the server has responded with
    /// 2xx. Blocks no cooperative thread.
    ///
    /// - Throws: `webhookFailed`, with the status if a response was received, when the server refuses (3xx, 4xx other
    ///   than 408, 425 and 429), is not trusted, or all tries failed; `cancelled` if the task was cancelled.
    package func send(_ message: WebhookMessage, to url: HTTPURL) async throws(TowlineError) {
        var options = connection
        if options.user == nil { options.user = url.userInfo }
        var tries = 0
        while true {
            let post = WebhookPost(
                url: url, message: message, options: options.withProxy(for: url, from: .current()), timeout: timeout)
            let answer = try await WorkThread.run { (flag) throws(TowlineError) in
                try flag.check("webhook to \(url)")
                return post.perform(flag)
            }
            if Task.isCancelled { throw TowlineError(.cancelled, Self.cancelled(url)) }
            tries += 1
            guard let failure = Self.judge(answer) else { return }
            if failure.isPermanent || retry.isExhausted(failures: tries, limit: nil) {
                let count = tries == 1 ? "" : ". Giving up after \(tries) attempts"
                throw TowlineError(
                    .webhookFailed, "cannot send the webhook to \(url): \(failure.reason)\(count)",
                    status: failure.status)
            }
            let delay = retry.backoff.delay(failures: tries, jitter: Double.random(in: 0..<1))
            let wait = max(delay, min(failure.wait ?? .zero, Self.longestWait))
            do {
                try await Task.sleep(for: wait)
            } catch {
                throw TowlineError(.cancelled, Self.cancelled(url))
            }
        }
    }

    private static func cancelled(_ url: HTTPURL) -> String {
        "the webhook to \(url) was cancelled, so it may not have reached the server"
    }

    /// The failure of one try to deliver a webhook message: whether another try may succeed, and how long to wait
    /// before it.
    private struct Failure {
        var reason: String
        var isPermanent: Bool
        var status: Int?
        var wait: Duration?
    }

    /// Returns the failure that the result of a try means, permanent or to be retried; `nil` for a response with status
    /// 2xx.
    private static func judge(_ answer: Result<ResponseHead, TransportFailure>) -> Failure? {
        switch answer {
        case .failure(let failure):
            let reason = TerminalSafeText.make(failure.message, width: 200)
            if case .permanent = RetryPolicy.classify(failure.kind) {
                return Failure(reason: reason, isPermanent: true)
            }
            return Failure(reason: reason, isPermanent: false)
        case .success(let head):
            switch head.status {
            case 200..<300: return nil
            case 408, 425, 429, 500...599:
                return Failure(
                    reason: "the webhook server reported a temporary error (\(head.status))", isPermanent: false,
                    status: head.status,
                    wait: RetryAfter.delay(head.fields))
            case 300..<400:
                return Failure(
                    reason: "the webhook server redirects to another URL (\(head.status)), which is not followed."
                        + " Use that URL",
                    isPermanent: true, status: head.status)
            default:
                return Failure(
                    reason: "the webhook server refused the message (\(head.status)). Check the URL of the webhook",
                    isPermanent: true, status: head.status)
            }
        }
    }
}
