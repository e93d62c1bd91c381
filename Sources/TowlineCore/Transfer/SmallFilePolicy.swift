/// A transfer of what may be a small file, as long as it is one request: what it asks, and which answer is the whole of it.
///
/// Of thousands of small files each is one request, one answer and one file. For that no `TransferStateMachine` is needed,
/// which would decide the same in six steps. Any other answer is one's, which takes the request over
/// (`TransferEvent.takenOver`).
package enum SmallFilePolicy {
    /// A longer file is none: from there on a file has a journal, and does not start over (DESIGN.md §3).
    package static let longest: Int64 = (1 << 20) - 1

    /// Whether what is known of a file tells that it is longer.
    package static func isLong(_ snapshot: TransferSnapshot) -> Bool {
        snapshot.completeLength.map { $0 > longest } ?? false
    }

    /// So much of an answer is held in memory until all of it is there.
    package static func mostHeld(of plan: AttemptPlan) -> Int64 {
        plan.sharesConnection ? SharingPolicy.smallLimit : longest
    }

    /// Whether nothing is asked for that takes a machine from the beginning: other sources, a stream, or fields that are refused.
    package static func suffices(for terms: TransferTerms) -> Bool {
        terms.mirrors.isEmpty && !terms.isStream && terms.maximumSize == nil
            && !terms.userFields.lines.contains { RequestTerms.isReserved($0.name) }
    }

    /// The request with which a `TransferStateMachine` begins that holds nothing and has neither mirrors nor a stream; without the
    /// wish for a checksum, if none is wanted.
    package static func plan(
        _ terms: TransferTerms, id: AttemptID, sharing: ConnectionSharing, wantsDigest: Bool = true
    ) -> AttemptPlan {
        let range = sharing == .none ? ResponseQuestion.Asked.from(0) : .range(RequestTerms.smallFile)
        var question = ResponseQuestion(
            asked: terms.sequential ? .whole : range, rung: .nothingToJoin, known: nil,
            holdsAllBeforeAsked: true, source: terms.source, nameOfURL: terms.nameOfURL)
        question.sendsUser = terms.hasUser
        question.adopt(terms)
        return AttemptPlan(
            id: id, url: terms.source,
            fields: RequestTerms.fields(question.asked, own: terms.userFields, wantsDigest: wantsDigest),
            sendsCredentials: true, question: question, lease: ByteRange(0, .max), overlap: 0, joinsDirectly: false,
            chain: [], isConfirmation: false, isRace: false, sharing: sharing)
    }

    /// Where a redirect of such a request leads; `nil`: nowhere, or there is more to decide. `known` is where another one led.
    package static func target(
        of verdict: ResponseVerdict, after plan: AttemptPlan, _ terms: TransferTerms, known: HTTPURL? = nil
    ) -> HTTPURL? {
        guard case .redirect(let location, _, let retryAfter) = verdict,
            retryAfter == nil || !RedirectPolicy.isSame(location, plan.url)
        else { return nil }
        return try? RedirectPolicy.target(
            of: location, from: plan.url, chain: plan.chain, source: terms.source, terms, after: known)
    }

    /// The request that follows a redirect, as the machine would send it. `linked`: the checksum that the redirect
    /// gave.
    package static func plan(
        _ terms: TransferTerms, at target: HTTPURL, after last: AttemptPlan, id: AttemptID, sharing: ConnectionSharing,
        wantsDigest: Bool = true, linked: LinkedChecksum? = nil
    ) -> AttemptPlan {
        // What is for the first origin goes nowhere else.
        let isOurs = target.origin == terms.source.origin
        var plan = plan(terms, id: id, sharing: sharing, wantsDigest: wantsDigest)
        plan.url = target
        plan.chain = last.chain + [last.url]
        plan.question.linked = linked ?? last.question.linked
        plan.question.nameOfURL = SafeFileName.ofURL(target, redirectedFrom: terms.source, named: terms.nameOfURL)
        guard !isOurs else { return plan }
        plan.sendsCredentials = false
        plan.sendsNetrc = target.scheme == .https || !plan.chain.contains { $0.scheme == .https }
        plan.question.sendsUser = false
        plan.fields = RequestTerms.fields(plan.question.asked, own: HTTPFields(), wantsDigest: wantsDigest)
        return plan
    }

    /// Whether a server is asked for a checksum (RFC 9530 §4) after so many answers in a row that had none. Over HTTP/1.1 the wish
    /// is a quarter of a request: after 32 of them one in 64 has it, for a server of which other files have checksums.
    package static func wantsDigest(after count: Int) -> Bool { count < 32 || count % 64 == 0 }

    /// Whether an answer that begins with a file's first byte has a checksum, which one that leads elsewhere has not; `nil` for any
    /// other.
    package static func hasDigest(_ verdict: ResponseVerdict) -> Bool? {
        switch verdict {
        case .partial(let range, _) where range.lowerBound > 0: nil
        case .partial(_, let facts), .whole(let facts): !facts.wholeDigests.isEmpty || !facts.contentDigests.isEmpty
        case .redirect: false
        default: nil
        }
    }

    /// What a file must hash to before it is published: what is known, the user's own first, and what the server vouches for,
    /// of which one is enough, the strongest.
    package static func checksums(besides known: [Checksum], _ facts: ResponseFacts) -> [Checksum] {
        guard let theirs = facts.wholeDigests.first?.checksum,
            !known.contains(where: { $0.algorithm == theirs.algorithm })
        else {
            return known
        }
        return known + [theirs]
    }

    /// What an answer says of a file that is published as soon as all of its bytes are there and hash to what they must; `nil` if
    /// there is more to decide: an empty file, a coded one, one of which this answer's content has a digest of its own.
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
