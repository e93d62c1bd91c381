internal import TowlineCore

/// Answers whose first bytes decide what they are.
extension AttemptWriter {
    /// Notes what an answer may be that only its first bytes tell: a page, or a stored file with a label.
    ///
    /// - Returns: whether the first bytes decide.
    func decidesByFirstBytes(_ verdict: ResponseVerdict) -> Bool {
        mayBePage = WebPage.isPossible(verdict, from: plan.url, plan.question)
        signatures = CodingLabel.signatures(for: verdict, from: plan.url, plan.question)
        return mayBePage || !signatures.isEmpty
    }

    /// Looks at bytes of an answer that is not reported yet, and reports the answer if they decide.
    ///
    /// - Returns: what to do with the bytes if more are needed; `nil` if the answer is reported.
    func look(at bytes: UnsafeRawBufferPointer) -> BodyDisposition? {
        guard let verdict = untold else { return nil }
        if mayBePage || !signatures.isEmpty {
            let first = gathered + bytes.prefix(WebPage.mostLooked)
            let isPage = mayBePage ? WebPage.isPage(first) : false
            let isLabelled = CodingLabel.agrees(first, with: signatures)
            let count = gathered.count + bytes.count
            if isPage == nil || isLabelled == nil, count < WebPage.mostLooked, buffers.grow(&gathered, to: count) {
                if let wait = takeAllowance(bytes.count) { return .pauseFor(wait) }
                gathered.append(contentsOf: bytes)
                return .consumed
            }
            untold = isLabelled == true ? verdict.withoutLabel : verdict
            if isPage == true { untold = .webPage(reason: WebPage.reason) }
        }
        tell()
        return nil
    }

    /// The report of an answer that ended before a byte decided. One that broke off is no answer.
    func decided(_ verdict: ResponseVerdict) -> Report {
        guard framing != nil else { return .ended(plan.id, deliveredResult) }
        if mayBePage, WebPage.isPage(gathered) == true {
            return .delivered(plan.id, .webPage(reason: WebPage.reason))
        }
        return .delivered(plan.id, verdict.ending(at: Int64(gathered.count)))
    }
}
