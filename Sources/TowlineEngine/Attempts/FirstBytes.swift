internal import TowlineCore

/// A decision that needs the first bytes of a response's body: it may be a web page or the text of an error instead of
/// the file, its Content-Encoding may describe the file itself, or its body may be empty.
struct FirstBytes {
    /// `true` if the response may be a web page, such as an error or login page, instead of the requested file.
    private let mayBePage: Bool
    /// `true` if the response is compressed and may be a web page: its first bytes show nothing.
    private let isCompressedPage: Bool
    /// `true` if the body may be empty or an error, and would replace bytes that are kept.
    private let mayBeError: Bool
    /// The first bytes of compressed formats such as gzip. A body that begins with them is a compressed file whose
    /// Content-Encoding only repeats the file's format, so that it is not decoded.
    private let signatures: [[UInt8]]

    /// Creates the decision about a response; `nil` if its head is sufficient to decide, so that no body bytes are
    /// needed. `verdict`: how the transfer would handle the response according to its head. `length`: the length of the
    /// body; `nil` if unknown.
    init?(of verdict: ResponseVerdict, to plan: AttemptPlan, length: Int64?) {
        mayBePage = WebPage.isPossible(verdict, from: plan.url, plan.question)
        isCompressedPage = mayBePage && WebPage.isCompressed(verdict, length: length, plan.question)
        signatures = CodingLabel.signatures(for: verdict, from: plan.url, plan.question)
        mayBeError =
            plan.question.replacesBytes && verdict.whole != nil && (length ?? 0) < ResponseFacts.longestError
        guard mayBePage || !signatures.isEmpty || mayBeError else { return nil }
    }

    /// Returns whether `bytes`, the beginning of the body, are sufficient to decide how the response is handled.
    func isDecided(by bytes: [UInt8]) -> Bool {
        if isCompressedPage { return true }
        // The end of a short body, which may be an error, gives its length.
        if mayBeError { return bytes.count >= ResponseFacts.longestError }
        return bytes.count >= WebPage.mostLooked
            || (!mayBePage || WebPage.isPage(bytes) != nil) && CodingLabel.agrees(bytes, with: signatures) != nil
    }

    /// Returns how the transfer must handle a response whose body begins with `bytes`. `verdict`: the decision
    /// according to its head alone.
    func verdict(_ verdict: ResponseVerdict, after bytes: [UInt8]) -> ResponseVerdict {
        let isPage = isCompressedPage || mayBePage && WebPage.isPage(bytes) == true
        if isPage { return .webPage(reason: WebPage.reason) }
        let verdict = mayBeError ? verdict.beginning(with: bytes) : verdict
        return CodingLabel.agrees(bytes, with: signatures) == true ? verdict.withoutLabel : verdict
    }
}
