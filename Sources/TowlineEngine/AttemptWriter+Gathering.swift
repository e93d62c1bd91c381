internal import TowlineCore

/// Answers that are told of once, when all of them has come.
extension AttemptWriter {
    /// The room for an answer that is a whole small file, or may be, and may be held.
    func gatherable(_ verdict: ResponseVerdict, _ head: ResponseHead) -> Int? {
        let length: Int64?
        switch verdict {
        case .partial(let range, let facts):
            let isWhole = range.lowerBound == 0 && range.upperBound == facts.representation.completeLength
            length = isWhole ? range.upperBound : nil
        case .whole(let facts):
            // Of chunks and streams nobody knows before they end.
            let mayBeSmall = facts.isChunked || head.version == .http2
            length = facts.representation.completeLength ?? (mayBeSmall ? Self.usualLength : nil)
        default: length = nil
        }
        guard mayGather, let length, length <= SmallFilePolicy.mostHeld(of: plan) else { return nil }
        return Int(length)
    }

    /// Room for what has no length.
    private static let usualLength: Int64 = 16 << 10

    /// Whether it leads elsewhere with a body that is read to its end: what follows may go over the same connection.
    func isDrainedRedirect(_ verdict: ResponseVerdict) -> Bool {
        guard case .redirect = verdict else { return false }
        return mayGather && drainable != nil
    }
}
