package import TowlineCore

/// The result of `Probe.run`: the server's response to the request with which a download of the URL would begin.
package struct ProbeReport: Sendable {
    /// The URL that sent the final response, after all redirects.
    package var finalURL: HTTPURL
    /// The URLs that responded with a redirect, in order; empty without a redirect.
    package var redirects: [HTTPURL]
    /// The response head of the final response, after all redirects.
    package var head: ResponseHead
    /// The properties of the file that the final response states, such as length, file name, ETag, date and checksums.
    package var facts: ResponseFacts
    /// `true` if the response has the status 206 (Partial Content), so that range requests work.
    package var givesRanges: Bool

    /// Returns whether the server supports range requests, so that an interrupted download can request only its missing
    /// bytes.
    package var offersRanges: Bool { givesRanges || facts.acceptsRanges == true }

    /// A text for the user that says whether an interrupted download can be resumed, and what the server sends to prove
    /// that the file is unchanged.
    package var resumption: String {
        if let coding = facts.contentCoding {
            let name = TerminalSafeText.make(coding, width: 20)
            return "no: an interrupted download restarts from the beginning,"
                + " because the server compresses the file (Content-Encoding: \(name))"
        }
        guard offersRanges else {
            return "no: an interrupted download restarts from the beginning,"
                + " because the server does not support range requests"
        }
        switch facts.representation.validator {
        case .strong:
            return "yes: an interrupted download resumes."
                + " The server sends a strong ETag or date, which shows whether the file changed"
        case .weak where !facts.wholeDigests.isEmpty, .none where !facts.wholeDigests.isEmpty:
            return "yes: an interrupted download resumes."
                + " The server sends a checksum, which is compared with the complete file at the end"
        case .weak:
            return "yes, with one connection: the server sends only a weak ETag or date,"
                + " so the last 64 KiB before the resume point are downloaded again and compared"
        case .none:
            return "only if you \(Remedy.checksum) or \(Remedy.unsafeResume),"
                + " because the server sends neither an ETag nor a Last-Modified date to prove that the file is unchanged"
        }
    }
}

/// Sends the first request of a download and reads the response head only, to show what the server offers.
package enum Probe {
    /// An event of the request: its response head has arrived, or it has ended.
    private enum Event: Sendable {
        case answered(AttemptID, ResponseVerdict, ResponseHead)
        case ended(AttemptID, AttemptResult)
    }

    /// Sends the request, follows redirects, and returns a report of the final response. Throws the error with which a
    /// download would fail before its first byte, without any retry.
    package static func run(
        _ options: DownloadOptions, transport: any Transport
    ) async throws(TowlineError) -> ProbeReport {
        var options = options
        options.maximumTries = 1
        if options.connection.user == nil { options.connection.user = options.url.userInfo }
        let (events, continuation) = AsyncStream<Event>.makeStream()
        var machine = TransferStateMachine(terms: TransferTerms(options))
        var plans: [AttemptID: AttemptPlan] = [:]
        var pending = machine.handle(.begin(nil), TransferContext(now: MonotonicClock.now))
        var iterator = events.makeAsyncIterator()
        var last: (AttemptPlan, ResponseVerdict, ResponseHead)?
        while true {
            for action in pending {
                switch action {
                case .start(let plan):
                    plans[plan.id] = plan
                    let receiver = HeadReceiver(plan.question) { verdict, head in
                        continuation.yield(.answered(plan.id, verdict, head))
                    } ended: { result in
                        continuation.yield(.ended(plan.id, result))
                    }
                    transport.start(
                        AttemptRequest(plan, connection: options.connection), receiver: receiver)
                case .cancel(let id): transport.cancel(id)
                case .prepare: if let report = report(last, options) { return report }
                case .finish(.failed(let error)): throw error
                default: break
                }
            }
            guard let event = await iterator.next() else { break }
            switch event {
            case .answered(let id, let verdict, let head):
                if let plan = plans[id] { last = (plan, verdict, head) }
                pending = machine.handle(.answered(id, verdict), TransferContext(now: MonotonicClock.now))
            case .ended(let id, let result):
                pending = machine.handle(.ended(id, result), TransferContext(now: MonotonicClock.now))
            }
        }
        throw TowlineError(.transient, "\(options.url): the server did not respond. Try again later")
    }

    private static func report(
        _ last: (AttemptPlan, ResponseVerdict, ResponseHead)?, _ options: DownloadOptions
    ) -> ProbeReport? {
        guard let (plan, verdict, head) = last else { return nil }
        var givesRanges = false
        if case .partial = verdict { givesRanges = true }
        var facts = ResponseFacts(head, nameOfURL: SafeFileName.ofURL(options.url))
        facts.adjustDigests(to: plan.question)
        return ProbeReport(
            finalURL: plan.url, redirects: plan.chain, head: head, facts: facts,
            givesRanges: givesRanges)
    }
}

/// The receiver of the response to a probe. It evaluates the head and closes the connection without reading the body.
private final class HeadReceiver: AttemptReceiver {
    private let question: ResponseQuestion
    private let answered: @Sendable (ResponseVerdict, ResponseHead) -> Void
    private let finished: @Sendable (AttemptResult) -> Void

    init(
        _ question: ResponseQuestion, answered: @escaping @Sendable (ResponseVerdict, ResponseHead) -> Void,
        ended: @escaping @Sendable (AttemptResult) -> Void
    ) {
        self.question = question
        self.answered = answered
        finished = ended
    }

    func receivedHead(_ head: ResponseHead) -> HeadDisposition {
        answered(ResponseEvaluator.verdict(on: head, to: question), head)
        return .stop
    }

    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition { .stop }

    func ended(_ end: AttemptEnd) { finished(AttemptResult(end)) }
}
