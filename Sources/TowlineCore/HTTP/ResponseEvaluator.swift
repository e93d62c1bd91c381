/// Judges a response by what was asked and what is known. A pure function; `docs/http-rules.md` lists its rows.
///
/// The rule above all others: bytes of two responses are joined only with proof that they are of the same
/// representation.
package enum ResponseEvaluator {
    /// The verdict on a response.
    package static func verdict(on head: ResponseHead, to question: ResponseQuestion) -> ResponseVerdict {
        let facts = ResponseFacts(head, nameOfURL: question.nameOfURL)
        if let broken = brokenFraming(facts, question) { return .permanent(broken) }
        switch facts.status {
        case 200: return judgeWhole(facts, question)
        case 206: return judgePartial(facts, question)
        case 416: return judgeUnsatisfiable(facts, question)
        case 300..<400: return judgeRedirect(facts, question)
        default: return judgeRefusal(facts, question)
        }
    }

    /// Framing that two parsers could read in two ways is refused (RFC 9112 §6.3 rules 3 and 5).
    private static func brokenFraming(_ facts: ResponseFacts, _ question: ResponseQuestion) -> TowlineError? {
        if case .invalid = facts.contentLength {
            return invalid("the server's Content-Length makes no sense", facts, question)
        }
        if facts.isChunked, case .length = facts.contentLength {
            return invalid("the response has both Transfer-Encoding and Content-Length", facts, question)
        }
        return nil
    }

    private static func invalid(
        _ what: String, _ facts: ResponseFacts, _ question: ResponseQuestion
    ) -> TowlineError {
        TowlineError(.invalidResponse, "\(question.source): \(what)", status: facts.status)
    }

    // MARK: 200

    private static func judgeWhole(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        guard let known = question.known else { return .whole(facts) }
        if facts.isWebPage, !question.expectsWebPage {
            return .webPage(reason: "a web page came in place of the file")
        }
        if let reason = known.contradiction(with: facts.representation) {
            return .changed(reason: reason, whole: facts)
        }
        // A whole answer to a range never goes to the range's offset (RFC 9110 §14.2: a server may ignore Range).
        if known.repeatsValidator(of: facts.representation, weakly: false) { return .rangeIgnored(facts) }
        if question.rung == .ifRange {
            return .changed(reason: "the server no longer has what was begun", whole: facts)
        }
        return .rangeIgnored(facts)
    }

    // MARK: 206

    private static func judgePartial(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        if case .whole = question.asked {
            return .permanent(invalid("206 came although no range was asked for", facts, question))
        }
        guard facts.hasContentRange else {
            let isMultipart = facts.representation.mediaType == "multipart/byteranges"
            return .rangeRefused(reason: isMultipart ? "several ranges came for one" : "206 without Content-Range")
        }
        guard case .satisfied(let range, let complete) = facts.contentRange else {
            return .rangeRefused(reason: "206 with a Content-Range that makes no sense")
        }
        if let coding = facts.contentCoding, question.known != nil {
            return .rangeRefused(reason: "the range came coded as \(TerminalSafeText.make(coding, width: 20))")
        }
        if let known = question.known {
            if let reason = known.contradiction(with: facts.representation) {
                return .changed(reason: reason, whole: nil)
            }
            if let lack = missingProof(known, facts, question.rung) { return .rangeRefused(reason: lack) }
            if question.asksMirror, !hasSameLength(known, facts.representation) {
                return .rangeRefused(reason: "206 does not repeat the complete length")
            }
        }
        if let reason = misplaced(range, complete, facts, question) { return .rangeRefused(reason: reason) }
        return .partial(range, facts)
    }

    /// What the rung demands of a 206 and this one does not give.
    private static func missingProof(
        _ known: Representation, _ facts: ResponseFacts, _ rung: ResponseQuestion.Rung
    ) -> String? {
        let given = facts.representation
        switch rung {
        case .nothingToJoin: return "nothing proves that it is of the same file"
        case .checksum: return nil
        case .ifRange:
            // RFC 9110 §15.3.7: a 206 repeats the ETag of the 200; Last-Modified may be left out after If-Range.
            guard known.entityTag != nil else {
                return given.entityTag == nil ? nil : "the range came with an ETag that the file did not have"
            }
            return known.repeatsValidator(of: given, weakly: false) ? nil : "206 does not repeat the ETag"
        case .repeatedValidator:
            let repeats = known.repeatsValidator(of: given, weakly: false)
            return repeats && hasSameLength(known, given) ? nil : "206 does not repeat validator and length"
        case .weakWithOverlap:
            let repeats = known.repeatsValidator(of: given, weakly: true)
            return repeats && hasSameLength(known, given) ? nil : "206 does not repeat validator and length"
        case .unsafe:
            return hasSameLength(known, given) ? nil : "206 does not repeat the complete length"
        }
    }

    private static func hasSameLength(_ known: Representation, _ given: Representation) -> Bool {
        known.completeLength != nil && known.completeLength == given.completeLength
    }

    /// Why the bytes are not where they were asked for (RFC 9110 §14.4, §15.3.7).
    private static func misplaced(
        _ range: ByteRange, _ complete: Int64?, _ facts: ResponseFacts, _ question: ResponseQuestion
    ) -> String? {
        guard range.lowerBound == question.asked.lowerBound else { return "the range begins elsewhere" }
        if case .range(let asked) = question.asked, range.upperBound > asked.upperBound {
            return "the range ends later than asked"
        }
        if let known = question.known?.completeLength, range.upperBound > known {
            return "the range ends after the file"
        }
        if case .length(let length) = facts.contentLength, length != range.count {
            return "Content-Length and Content-Range disagree"
        }
        return nil
    }

    // MARK: 416

    private static func judgeUnsatisfiable(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        if case .whole = question.asked {
            return .permanent(invalid("416 came although no range was asked for", facts, question))
        }
        guard case .unsatisfied(let length) = facts.contentRange else {
            return .askWithoutRange(reason: "the server refuses ranges (416)")
        }
        guard let known = question.known else {
            return length == 0 ? .empty(facts) : .askWithoutRange(reason: "the server refuses ranges (416)")
        }
        let isEnd = question.asked.lowerBound == length && question.holdsAllBeforeAsked
        if isEnd, known.completeLength ?? length == length {
            // A server that looks at the range first refuses it for another file of that length, too.
            if let reason = known.contradiction(with: facts.representation) {
                return .changed(reason: reason, whole: nil)
            }
            return .complete(length: length)
        }
        if known.completeLength == length { return .rangeRefused(reason: "416 for a range inside the file") }
        return .changed(reason: "its length is \(length)", whole: nil)
    }

    // MARK: 3xx

    private static func judgeRedirect(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        guard facts.status != 304, facts.status != 300 || facts.location != nil else {
            return .permanent(invalid("unexpected status \(facts.status)", facts, question))
        }
        guard let location = facts.location, !location.isEmpty else {
            return .permanent(
                TowlineError(
                    .redirectRefused, "\(question.source): redirected to nowhere (\(facts.status) without Location)",
                    status: facts.status))
        }
        return .redirect(location: location)
    }
}
