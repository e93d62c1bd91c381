internal import TowlineCore

/// Responses whose first bytes decide how they are handled: a web page instead of the file, or a wrong
/// Content-Encoding.
extension AttemptWriter {
    /// Notes whether the response may be a web page, or a compressed file whose Content-Encoding is only a label. Only
    /// the first bytes of the body decide that.
    ///
    /// - Returns: `true` if the first bytes must be inspected before the response is reported.
    func decidesByFirstBytes(_ verdict: ResponseVerdict) -> Bool {
        mayBePage = WebPage.isPossible(verdict, from: plan.url, plan.question)
        signatures = CodingLabel.signatures(for: verdict, from: plan.url, plan.question)
        return mayBePage || !signatures.isEmpty
    }

    /// Inspects the first bytes of a response that is not reported yet, and reports the response if they decide.
    ///
    /// - Returns: the instruction to the transport if more bytes are needed to decide; `nil` if the response is
    ///   reported.
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

    /// Returns the report of a response that ended before its first bytes decided. A response that was cut short is
    /// reported as `ended`.
    func decided(_ verdict: ResponseVerdict) -> Report {
        guard framing != nil else { return .ended(plan.id, deliveredResult) }
        if mayBePage, WebPage.isPage(gathered) == true {
            return .delivered(plan.id, .webPage(reason: WebPage.reason))
        }
        return .delivered(plan.id, verdict.ending(at: Int64(gathered.count)))
    }
}
