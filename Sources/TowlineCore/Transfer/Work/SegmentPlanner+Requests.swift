/// Functions that compose a request of a transfer: the bytes to request, the bytes to compare, and the header fields.
extension SegmentPlanner {
    /// The number of bytes before each resume point that are requested again and compared with the written ones.
    static let overlap: Int64 = 16 << 10
    /// The number of bytes before each resume point that are requested again and compared if no strong validator proves
    /// that the file is unchanged, or the part file is a copy. Otherwise, fewer bytes (`overlap`) suffice.
    static let weakOverlap: Int64 = 64 << 10

    /// Returns the number of bytes before `lease` that a request to a source repeats, for comparison with the written
    /// ones.
    func overlap(before lease: ByteRange, from id: SourceID, _ ledger: RangeLedger) -> Int64 {
        // If the length is unknown, only the bytes after the written ones are requested, to find the end.
        if ledger.completeLength == nil, evidence.isConfirmed { return 0 }
        let isWeak = (evidence.rung(at: id, ledger) ?? .unsafe) > .repeatedValidator || evidence.part.isDoubtful
        // A server that sends so few bytes at once would send nothing but the overlap.
        if sources[id].givesOverlapAlone, !evidence.needsOverlap(at: id, ledger), !lease.isEmpty { return 0 }
        let most = isWeak ? SegmentPlanner.weakOverlap : SegmentPlanner.overlap
        return min(ledger.writtenBefore(lease.lowerBound), most)
    }

    /// Returns the description of an attempt's request, with which its response is evaluated: the requested bytes, and
    /// the known length and validators of the file.
    ///
    /// - Parameters:
    ///   - isFirst: `true` if the response will define the file.
    ///   - isOurs: `true` if the request may carry the user's credentials.
    ///   - isPlain: `true` if the request has no Range field.
    ///   - atMost: the maximum number of requested bytes; `nil` without a limit.
    func question(
        _ lease: ByteRange, overlap: Int64, isFirst: Bool, from id: SourceID, isOurs: Bool,
        isPlain: Bool = false, atMost: Int64? = nil, _ ledger: RangeLedger
    ) -> ResponseQuestion {
        let lower = lease.lowerBound - overlap
        let asked: ResponseQuestion.Asked
        if isPlain || isFirst && (evidence.ranges.support == .broken || terms.options.isSequential) {
            asked = .whole
        } else if let atMost {
            asked = .range(ByteRange(lower, lower + atMost))
        } else {
            asked = lease.upperBound == .max ? .from(lower) : .range(ByteRange(lower, lease.upperBound))
        }
        var question = ResponseQuestion(
            asked: asked, rung: isFirst || isPlain ? .nothingToJoin : evidence.rung(at: id, ledger) ?? .nothingToJoin,
            known: evidence.known(at: id, ledger),
            holdsAllBeforeAsked: ledger.written.contains(ByteRange(0, lease.lowerBound)),
            workedBefore: evidence.isConfirmed,
            expectsWebPage: terms.options.acceptsWebPages
                || evidence.representation?.mediaType.map(WebPage.isPage(mediaType:)) ?? false,
            source: sources[id].url, nameOfURL: sources[id].nameOfURL)
        question.asksMirror = id != .primary
        question.replacesBytes = evidence.atStake(ledger) != nil
        question.label = evidence.coding.label
        question.earlierMediaType =
            evidence.representation?.mediaType ?? evidence.part.replaced?.representation.mediaType
        question.adopt(terms)
        if id == .primary { question.linked = evidence.linked }
        question.sendsUser = terms.hasUser && isOurs
        return question
    }

    /// Returns the header fields of the request that `question` describes.
    func fields(_ question: ResponseQuestion, isOurs: Bool) -> HTTPFields {
        let proof: String? =
            if question.rung == .ifRange, case .strong(let value) = evidence.representation?.validator { value } else {
                nil
            }
        return RequestTerms.fields(
            question.asked, own: isOurs ? terms.userFields : HTTPFields(), confirms: evidence.changes.isConfirming,
            proof: proof,
            condition: question.condition)
    }
}
