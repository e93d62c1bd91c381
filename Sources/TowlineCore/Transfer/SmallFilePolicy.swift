/// The rules of a transfer that is a single request, because the file may be small (docs/internals/small-files.md): the
/// request to send, and the responses that complete it. For any other response, a state machine takes over the request
/// (`TransferEvent.takenOver`).
package enum SmallFilePolicy {
    /// The length in bytes of the longest small file. A longer file has a journal, which records its written bytes, and
    /// is resumed instead of downloaded from the start again (docs/internals/small-files.md).
    package static let longest: Int64 = (1 << 20) - 1

    /// Returns whether the file of a transfer is known to be longer than `longest`, so that it is not a small file;
    /// `false` while its length is unknown.
    package static func isLong(_ snapshot: TransferSnapshot) -> Bool {
        snapshot.completeLength.map { $0 > longest } ?? false
    }

    /// Returns the maximum number of bytes of a response that are kept in memory until the response is complete. A
    /// longer body is not collected.
    package static func mostHeld(of plan: AttemptPlan) -> Int64 {
        plan.sharesConnection ? SharingPolicy.smallLimit : longest
    }

    /// Returns whether a download with these options may begin as a single request, without a state machine. Mirrors, a
    /// stream, a size limit and reserved fields require a state machine from the beginning.
    package static func suffices(for terms: TransferTerms) -> Bool {
        terms.mirrors.isEmpty && !terms.isStream && terms.options.maximumSize == nil
            && !terms.userFields.lines.contains { RequestTerms.isReserved($0.name) }
    }

    /// Returns the first request for a file without earlier bytes, the same that a `TransferStateMachine` would send if
    /// there are no mirrors and no stream. `sharing`: the way in which the request shares its connection.
    /// `wantsDigest`: `true` to ask the server for a checksum.
    package static func plan(
        _ terms: TransferTerms, id: AttemptID, sharing: ConnectionSharing, wantsDigest: Bool = true
    ) -> AttemptPlan {
        let range = sharing == .none ? ResponseQuestion.Asked.from(0) : .range(RequestTerms.smallFile)
        var question = ResponseQuestion(
            asked: terms.options.isSequential ? .whole : range, rung: .nothingToJoin, known: nil,
            holdsAllBeforeAsked: true, source: terms.source, nameOfURL: terms.nameOfURL)
        question.sendsUser = terms.hasUser
        question.adopt(terms)
        return AttemptPlan(
            id: id, url: terms.source,
            fields: RequestTerms.fields(question.asked, own: terms.userFields, wantsDigest: wantsDigest),
            sendsCredentials: true, question: question, lease: ByteRange(0, .max), overlap: 0, joinsDirectly: false,
            chain: [], isConfirmation: false, isRace: false, sharing: sharing)
    }

    /// Returns the target of a redirect in the response to `plan`, the single request of a transfer. `nil`: the
    /// response is no redirect, or a state machine must decide.
    package static func target(
        of verdict: ResponseVerdict, after plan: AttemptPlan, _ terms: TransferTerms
    ) -> HTTPURL? {
        guard case .redirect(let location, _, let retryAfter) = verdict,
            retryAfter == nil || !RedirectPolicy.isSame(location, plan.url)
        else { return nil }
        return try? RedirectPolicy.target(
            of: location, from: plan.url, chain: plan.chain, source: terms.source, terms)
    }

    /// Returns the request that follows the redirect of `last` to `target`, as a state machine would send it. `linked`:
    /// the checksum of the target file that the redirect response contained; `nil` without one.
    package static func plan(
        _ terms: TransferTerms, at target: HTTPURL, after last: AttemptPlan, id: AttemptID, sharing: ConnectionSharing,
        wantsDigest: Bool = true, linked: LinkedChecksum? = nil
    ) -> AttemptPlan {
        // Credentials and fields for the first origin are sent to no other origin.
        let isOurs = target.origin == terms.source.origin
        var plan = plan(terms, id: id, sharing: sharing, wantsDigest: wantsDigest)
        plan.url = target
        plan.chain = last.chain + [last.url]
        plan.question.linked = linked ?? last.question.linked
        plan.question.nameOfURL = SafeFileName.ofURL(target, redirectedFrom: terms.source, named: terms.nameOfURL)
        guard !isOurs else { return plan }
        plan.question.isAtFirstOrigin = false
        plan.sendsCredentials = false
        plan.sendsNetrc = target.scheme == .https || !plan.chain.contains { $0.scheme == .https }
        plan.question.sendsUser = false
        plan.fields = RequestTerms.fields(plan.question.asked, own: HTTPFields(), wantsDigest: wantsDigest)
        return plan
    }

    /// Returns whether to ask a server for a checksum (RFC 9530 §4) after `count` responses in a row without a
    /// checksum. Over HTTP/1.1 the field that asks is a quarter of a request. After 32 responses, only one request in
    /// 64 has the field, because other files of the server may have checksums.
    package static func wantsDigest(after count: Int) -> Bool { count < 32 || count % 64 == 0 }

    /// Returns whether a response that begins with a file's first byte has a checksum, for the count of
    /// `wantsDigest(after:)`. The result is `false` for a redirect, and `nil` for any other response, which is not
    /// counted.
    package static func hasDigest(_ verdict: ResponseVerdict) -> Bool? {
        switch verdict {
        case .partial(let range, _) where range.lowerBound > 0: nil
        case .partial(_, let facts), .whole(let facts): !facts.wholeDigests.isEmpty || !facts.contentDigests.isEmpty
        case .redirect: false
        default: nil
        }
    }

    /// Returns the checksums that a file must match before it is published: the known ones, the user's first, and the
    /// strongest one that the server sent.
    package static func checksums(besides known: [Checksum], _ facts: ResponseFacts) -> [Checksum] {
        guard let theirs = facts.wholeDigests.first?.checksum,
            !known.contains(where: { $0.algorithm == theirs.algorithm })
        else {
            return known
        }
        return known + [theirs]
    }

    /// Returns the parsed head of a response whose body is a complete small file. The file is published once all bytes
    /// arrived and match their checksums. `nil` if a state machine must decide: the file is empty, long or coded, the
    /// content of the response has its own digest, or the body is not the file.
    package static func file(in verdict: ResponseVerdict) -> ResponseFacts? {
        let facts: ResponseFacts
        switch verdict {
        case .partial(let range, let partial):
            guard range.lowerBound == 0, range.upperBound == partial.representation.completeLength else { return nil }
            facts = partial
        case .whole(let whole): facts = whole
        default: return nil
        }
        guard let length = facts.representation.completeLength, (1...longest).contains(length),
            facts.contentCoding == nil, facts.label == nil, facts.contentDigests.isEmpty
        else { return nil }
        return facts
    }
}
