internal import TowlineCore

/// A decision that needs the first bytes of a body: the response may be a web page instead of the file, its
/// Content-Encoding may be only a label, or its body may be empty.
struct FirstBytes {
    /// `true` if the response may be a web page, such as an error or login page, instead of the file.
    private let mayBePage: Bool
    /// The possible beginnings of a body that is stored in a compressed format. Such a beginning shows that the
    /// Content-Encoding is only a label of the file's format.
    private let signatures: [[UInt8]]

    /// Creates the decision about a response; `nil` if its head is sufficient, so that the body can be accepted at
    /// once.
    init?(of verdict: ResponseVerdict, to plan: AttemptPlan, hasLength: Bool) {
        mayBePage = WebPage.isPossible(verdict, from: plan.url, plan.question)
        signatures = CodingLabel.signatures(for: verdict, from: plan.url, plan.question)
        // A new body that is empty must be confirmed before it replaces bytes.
        let mayBeEmpty = plan.question.replacesBytes && verdict.whole != nil && !hasLength
        guard mayBePage || !signatures.isEmpty || mayBeEmpty else { return nil }
    }

    /// Returns whether `bytes`, the beginning of the body, are sufficient to decide how the response is handled.
    func isDecided(by bytes: [UInt8]) -> Bool {
        bytes.count >= WebPage.mostLooked
            || (!mayBePage || WebPage.isPage(bytes) != nil) && CodingLabel.agrees(bytes, with: signatures) != nil
    }

    /// Returns the verdict on a response whose body begins with `bytes`. `verdict`: the verdict on its head.
    func verdict(_ verdict: ResponseVerdict, after bytes: [UInt8]) -> ResponseVerdict {
        if mayBePage, WebPage.isPage(bytes) == true { return .webPage(reason: WebPage.reason) }
        return CodingLabel.agrees(bytes, with: signatures) == true ? verdict.withoutLabel : verdict
    }
}
