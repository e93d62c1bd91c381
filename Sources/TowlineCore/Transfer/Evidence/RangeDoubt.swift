/// The state of the suspicion that a server refuses requests only because of their Range field. If the suspicion
/// applies, the next request is sent without Range.
struct RangeDoubt: Hashable, Sendable {
    /// `true` if the next request is sent without a Range field, because the field may have caused a refusal.
    var asksPlain = false
    /// `true` if a request without a Range field was sent, and no response was accepted since.
    var hasAskedPlain = false
    /// `true` if a status such as 404 refused the range request, so that waiting does not help.
    var isCertain = false
    /// `true` if a request without a Range field was refused as well, so that the field is not the reason.
    var isRefuted = false
    /// `true` if a request without a Range field succeeded after a temporary refusal, and the range was then requested
    /// once more.
    var asksAgain = false
    /// The number of temporary refusals in a row of requests that resume a download.
    var refusals = 0

    /// Returns whether the next request is sent without Range, and records that it is sent.
    ///
    /// - Parameter beginsAnew: `true` if no bytes are written. Requests then stay without Range once ranges are
    ///   certainly refused.
    mutating func takePlain(beginsAnew: Bool) -> Bool {
        guard asksPlain else { return false }
        hasAskedPlain = true
        asksPlain = isCertain && beginsAnew
        return true
    }

    /// Returns whether a range request may succeed after a request without a Range field did: the refusal was
    /// temporary, and the server supports ranges, as it has shown before (`hadRanges`) or announces in this response.
    func mayHavePassed(_ facts: ResponseFacts, hadRanges: Bool) -> Bool {
        hasAskedPlain && !isCertain && !asksAgain && (hadRanges || facts.acceptsRanges == true)
    }
}
