/// The rules that decide from the head of a response, its request and earlier responses whether its body may be
/// written. A pure function; `docs/http-rules.md` lists the rules as rows of a table.
///
/// The most important rule: bytes of two responses are joined only with proof of the same representation.
package enum ResponseEvaluator {
    /// Returns the verdict on a response: whether its body may be written, and whether the request is retried, changed
    /// or fails.
    package static func verdict(on head: ResponseHead, to question: ResponseQuestion) -> ResponseVerdict {
        var head = head
        // 203 means that a proxy transformed the file (RFC 9110 §15.3.4).
        if head.status == 203 { head.status = 200 }
        var facts = ResponseFacts(head, nameOfURL: question.nameOfURL)
        if let coding = facts.contentCoding, !CodingLabel.isKnown(coding) { facts = facts.withoutLabel }
        facts.adjustDigests(to: question)
        if let broken = brokenFraming(facts, question) { return .permanent(broken) }
        switch facts.status {
        case 200 where facts.hasContentRange: return judgeLabelled(facts, question)
        case 200: return judgeWhole(facts, question)
        case 206: return judgePartial(facts, question)
        case 416: return judgeUnsatisfiable(facts, question)
        case 300..<400: return judgeRedirect(facts, question)
        default: return judgeRefusal(facts, question)
        }
    }

    /// Returns the error of a response whose Content-Length two parsers could read in two ways (RFC 9112 §6.3 rule 5);
    /// otherwise `nil`.
    private static func brokenFraming(_ facts: ResponseFacts, _ question: ResponseQuestion) -> TowlineError? {
        if case .invalid = facts.contentLength {
            let what = "the server sent an invalid Content-Length header, so the length of the file is unclear"
            return invalid(what, facts, question)
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
        if facts.isWebPage, !question.expectsWebPage { return .webPage(reason: WebPage.reason) }
        if let reason = known.contradiction(with: facts.representation) {
            guard isUnlabelledPart(facts, question, known) else {
                return .changed(reason: reason, facts, isWhole: true)
            }
            let what =
                "the server sent as many bytes as were requested with status 200, which stands for the whole file"
            return .rangeRefused(reason: what)
        }
        let whole = known.completeLength.map { ByteRange(0, $0) }
        if known.repeatsValidator(of: facts.representation, weakly: true), let type = errorType(facts, whole, question)
        {
            return error(type, facts)
        }
        // A 200 to a range request is never written at the range's offset (RFC 9110 §14.2: a server may ignore Range).
        if known.repeatsValidator(of: facts.representation, weakly: false) { return .rangeIgnored(facts) }
        // nginx does not match a tag that nginx itself made weak: the next rung asks without If-Range.
        if isUnchangedWeakly(known, facts) { return .rangeIgnored(facts) }
        if question.rung == .ifRange {
            let reason =
                "the server no longer has the version of the file that was partly downloaded,"
                + " so the download cannot be resumed"
            return .changed(reason: reason, facts, isWhole: true)
        }
        return .rangeIgnored(facts)
    }

    /// Returns whether a response with status 200 has the length of the requested range and not of the file. The body
    /// is then probably that range, although the server did not say so, and must not become the file.
    private static func isUnlabelledPart(
        _ facts: ResponseFacts, _ question: ResponseQuestion, _ known: Representation
    ) -> Bool {
        guard let length = facts.representation.completeLength, length != known.completeLength else { return false }
        switch question.asked {
        case .whole: return false
        case .from(let lower): return known.completeLength.map { $0 - lower } == length
        case .range(let range): return range.count == length
        }
    }

    /// Judges a 200 with Content-Range. Some servers support Range but send 200: the body is the part that
    /// Content-Range names, and must not be assumed to be the whole file.
    private static func judgeLabelled(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        guard var part = facts.asPart, case .satisfied(let range, let complete) = part.contentRange else {
            // RFC 9110 §14.4 defines the field for a 206 and a 416 only.
            if question.asked == .whole { return judgeWhole(facts, question) }
            let reason =
                "the server sent status 200 with an unusable Content-Range,"
                + " so it is unclear which part of the file it sent"
            return question.known == nil ? .askWithoutRange(reason: reason) : .rangeRefused(reason: reason)
        }
        let isWhole = range.lowerBound == 0 && range.upperBound == complete
        if isWhole, !question.asked.mayReach(range) { return judgeWhole(facts, question) }
        part.adjustDigests(to: question)
        return judgePartial(part, question)
    }

    // MARK: 206

    private static func judgePartial(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        if case .whole = question.asked, !isBeginning(facts, question) {
            let what =
                "the server sent only a part of the file (status \(facts.status)) although the whole file was requested"
            return .permanent(invalid(what, facts, question))
        }
        guard facts.hasContentRange else {
            let isMultipart = facts.representation.mediaType == "multipart/byteranges"
            return .rangeRefused(
                reason: isMultipart
                    ? "the server sent several parts of the file in one response (multipart/byteranges)"
                        + " although only one part was requested"
                    : "the server sent a part of the file (206) without Content-Range, so it is unclear which part")
        }
        guard case .satisfied(let range, let complete) = facts.contentRange else {
            let reason =
                "the server sent a part of the file (206) with an invalid Content-Range, so it is unclear which part"
            return .rangeRefused(reason: reason)
        }
        if let type = errorType(facts, range, question) { return error(type, facts) }
        let isLabelled = question.label.allows(facts, range, question)
        if let coding = facts.contentCoding, question.known != nil, !isLabelled {
            let name = TerminalSafeText.make(coding, width: 20)
            let reason =
                "the server sent a compressed part of the file (Content-Encoding: \(name)),"
                + " which cannot be joined with the other parts"
            return .rangeRefused(reason: reason)
        }
        if let known = question.known {
            if let reason = known.contradiction(with: facts.representation) {
                return .changed(reason: reason, facts, isWhole: false)
            }
            if let lack = missingProof(known, facts, question.rung) {
                let mayWeaken = [.ifRange, .repeatedValidator].contains(question.rung)
                let isWeaker = mayWeaken && isUnchangedWeakly(known, facts)
                return isWeaker ? .weakened(reason: lack) : .rangeRefused(reason: lack)
            }
            if question.asksMirror, !hasSameLength(known, facts.representation) {
                return .rangeRefused(reason: noLength)
            }
        }
        if let reason = misplaced(range, complete, facts, question) { return .rangeRefused(reason: reason) }
        return .partial(range, question.known != nil && isLabelled ? facts.withoutLabel : facts)
    }

    /// Returns the media type of a response that claims to be a range of the known version and is an error: a text type
    /// of another kind than the file, without the length of the range in Content-Length. Returns `nil` for others.
    private static func errorType(
        _ facts: ResponseFacts, _ range: ByteRange?, _ question: ResponseQuestion
    ) -> String? {
        guard question.known != nil, let range, facts.contentLength != .length(range.count) else { return nil }
        let type = facts.representation.mediaType
        let kind = ContentKind(mediaType: type)
        return kind == .binary || kind == ContentKind(mediaType: question.earlierMediaType) ? nil : type
    }

    private static func error(_ type: String, _ facts: ResponseFacts) -> ResponseVerdict {
        let name = TerminalSafeText.make(type, width: 40)
        let reason = "the server sent something else (\(name)) instead of the requested bytes of the file"
        return .transient(reason: reason, retryAfter: facts.retryAfter, overloaded: false, status: facts.status)
    }

    /// Returns whether a 206 in response to a request for the whole file can be used: its part begins with the first
    /// byte, and no earlier response is known. The rest is then requested.
    private static func isBeginning(_ facts: ResponseFacts, _ question: ResponseQuestion) -> Bool {
        guard question.known == nil, case .satisfied(let range, _) = facts.contentRange else { return false }
        return range.lowerBound == 0
    }

    /// Returns the reason why a 206 lacks the required proof (`rung`) that its bytes belong to the version of the file
    /// in the part file; `nil` if the proof is sufficient.
    private static func missingProof(
        _ known: Representation, _ facts: ResponseFacts, _ rung: ResponseQuestion.Rung
    ) -> String? {
        let given = facts.representation
        switch rung {
        case .nothingToJoin:
            return "the server sent a part of the file, but nothing proves that the file is unchanged"
        case .checksum: return nil
        case .ifRange:
            // RFC 9110 §15.3.7: a 206 repeats the ETag of the 200, but may omit Last-Modified after If-Range.
            guard known.entityTag?.isWellFormed ?? false else {
                return known.entityTag == nil && given.entityTag != nil ? newTag : nil
            }
            let repeats = known.repeatsValidator(of: given, weakly: false)
            return repeats ? nil : noTag
        case .repeatedValidator:
            let repeats = known.repeatsValidator(of: given, weakly: false)
            return repeats && hasSameLength(known, given) ? nil : noProof
        case .weakWithOverlap:
            let repeats = known.repeatsValidator(of: given, weakly: true)
            return repeats && hasSameLength(known, given) ? nil : noProof
        case .unsafe:
            return hasSameLength(known, given) ? nil : noLength
        }
    }

    /// Returns whether the complete length is known and equal, and the validator equal by weak comparison: the part of
    /// the proof `Rung.weakWithOverlap` that the head can give.
    private static func isUnchangedWeakly(_ known: Representation, _ facts: ResponseFacts) -> Bool {
        known.repeatsValidator(of: facts.representation, weakly: true) && hasSameLength(known, facts.representation)
    }

    private static let newTag =
        "the server sent a part of the file with an ETag, but the first response had no ETag,"
        + " so the file may have changed"
    private static let noTag =
        "the server sent a part of the file without the ETag of the file,"
        + " so it is not certain that the file is unchanged"
    private static let noLength =
        "the server sent a part of the file without the length of the whole file,"
        + " so the file may be a different one"
    private static let noProof =
        "the server sent a part of the file without proof (length, and ETag or date) that the file is unchanged"

    private static func hasSameLength(_ known: Representation, _ given: Representation) -> Bool {
        known.completeLength != nil && known.completeLength == given.completeLength
    }

    /// Returns the reason why a 206 with `range` does not fit the requested range (RFC 9110 §14.4, §15.3.7); `nil` if
    /// it fits.
    private static func misplaced(
        _ range: ByteRange, _ complete: Int64?, _ facts: ResponseFacts, _ question: ResponseQuestion
    ) -> String? {
        let lower = question.asked.lowerBound
        guard range.lowerBound == lower else {
            return "the server sent the wrong part of the file (\(facts.status)):"
                + " from byte \(range.lowerBound), not from \(lower)"
        }
        let last = range.upperBound - 1
        if case .range(let asked) = question.asked, range.upperBound > asked.upperBound {
            let end = asked.upperBound - 1
            return "the server sent more of the file than requested (\(facts.status)):"
                + " up to byte \(last), not up to \(end)"
        }
        if let known = question.known?.completeLength, range.upperBound > known {
            return "the server sent an impossible part of the file (\(facts.status)):"
                + " up to byte \(last) of \(known) bytes"
        }
        if case .length(let length) = facts.contentLength, length != range.count {
            return "the server sent two different lengths for a part of the file (\(facts.status)):"
                + " \(length) bytes in Content-Length, \(range.count) bytes in Content-Range"
        }
        return nil
    }

    // MARK: 416

    private static func judgeUnsatisfiable(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        if case .whole = question.asked {
            let what =
                "the server sent status 416 (range not satisfiable) although no range was requested"
            return .permanent(invalid(what, facts, question))
        }
        guard case .unsatisfied(let length) = facts.contentRange else {
            return .askWithoutRange(reason: rangeRequestRefused(416))
        }
        guard let known = question.known else {
            return length == 0 ? .empty(facts) : .askWithoutRange(reason: rangeRequestRefused(416))
        }
        let isEnd = question.asked.lowerBound == length && question.holdsAllBeforeAsked
        if isEnd, known.completeLength ?? length == length {
            // A server that checks the range first also refuses the range for a different file of this length.
            if let reason = known.contradiction(with: facts.representation) {
                return .changed(reason: reason, facts, isWhole: false)
            }
            return .complete(length: length)
        }
        if known.completeLength == length {
            let reason = "the server refused a range request (416) although the requested range is inside the file"
            return .rangeRefused(reason: reason)
        }
        let reason =
            "the server has a different version of the file (its length is now \(length) bytes),"
            + " so its bytes cannot be joined with those downloaded so far"
        return .changed(reason: reason, facts, isWhole: false)
    }

    /// Returns the text for the user about a range request that the server refused with `status`, so that the whole
    /// file is requested.
    static func rangeRequestRefused(_ status: Int) -> String {
        "the server refused a range request (\(status)), so only the whole file can be requested"
    }

    // MARK: 3xx

    private static func judgeRedirect(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        if facts.status == 304, question.rung == .ifRange {
            let reason = "the server confused If-Range with If-Modified-Since (status 304)"
            return .conditionRefused(reason: reason)
        }
        if facts.status == 304, let condition = question.condition {
            guard condition.isContradicted(by: facts.representation) else { return .notModified }
            return .conditionRefused(reason: "the server confirmed a different version of the file (status 304)")
        }
        guard facts.status != 304, facts.status != 300 || facts.hasLocation else {
            let what =
                "invalid response: the server sent neither the file nor a redirect to its URL (status \(facts.status))"
            return .permanent(invalid(what, facts, question))
        }
        guard let location = facts.location, !location.isEmpty else {
            let isAmbiguous = facts.hasLocation && facts.location == nil
            let problem =
                isAmbiguous
                ? "the response has several Location headers with different target URLs"
                : "the target URL (Location header) is missing"
            return .permanent(
                TowlineError(
                    .redirectRefused,
                    "\(question.source): the server sent an invalid redirect (\(facts.status)): \(problem)."
                        + " Check the URL",
                    status: facts.status))
        }
        return .redirect(
            location: location, question.isAtFirstOrigin ? facts.linked : nil, retryAfter: facts.retryAfter)
    }
}
