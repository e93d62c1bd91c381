/// What an attempt asked, and what was known when it asked: all that a response is judged by.
package struct ResponseQuestion: Hashable, Sendable {
    /// The bytes asked for.
    package enum Asked: Hashable, Sendable {
        /// No `Range` field: the whole.
        case whole
        /// `bytes=lower-` with an open end.
        case from(Int64)
        /// `bytes=lower-(upper-1)`.
        case range(ByteRange)

        /// The first byte asked for.
        package var lowerBound: Int64 {
            switch self {
            case .whole: 0
            case .from(let lower): lower
            case .range(let range): range.lowerBound
            }
        }

        /// Returns whether a part may be the answer: it begins at the first byte asked for, and ends no later.
        func mayReach(_ part: ByteRange) -> Bool {
            switch self {
            case .whole: false
            case .from(let lower): part.lowerBound == lower
            case .range(let range): part.lowerBound == range.lowerBound && part.upperBound <= range.upperBound
            }
        }
    }

    /// By which rung of the proof ladder this attempt joins its bytes to those held (DESIGN.md §4).
    package enum Rung: Hashable, Sendable, Comparable {
        /// Nothing is held or written by others: nothing is joined.
        case nothingToJoin
        /// (1) `If-Range` with a strong validator.
        case ifRange
        /// (2) A plain range whose 206 repeats the strong validator and the complete length.
        case repeatedValidator
        /// (3) An unchanged weak validator, an equal complete length, and an overlap of 64 KiB.
        case weakWithOverlap
        /// (4) A checksum of the whole, verified before publishing.
        case checksum
        /// The user said so: length and overlap alone.
        case unsafe
    }

    /// The bytes asked for.
    package var asked: Asked
    /// The proof this attempt brings.
    package var rung: Rung
    /// What is known of the representation; `nil` before the first answer.
    package var known: Representation?
    /// Whether every byte of the known complete length (or all up to `asked`) is held.
    package var holdsAllBeforeAsked: Bool
    /// Whether this URL, or the one that led to it, gave bytes of the file before.
    package var workedBefore: Bool
    /// Whether the download's bytes are a web page by its own account.
    package var expectsWebPage: Bool
    /// Whether a mirror was asked, whose answer has to say how long the file is, whatever the rung.
    package var asksMirror = false
    /// Whether the caller's user and password, or a token, went along.
    package var sendsUser = false
    /// The user accepts a web page whatever the file should be.
    package var acceptsWebPages = false
    /// The media type of bytes that are held, or are still in the part file after a restart.
    package var earlierMediaType: String?
    /// The name that the user gave the file.
    package var fileName: String?
    /// The label of the bytes that are held.
    package var label = CodingLabel.unknown
    /// The checksums in responses are not used.
    package var ignoresServerChecksums = false
    /// Statuses that the user calls transient.
    package var retryStatuses: Set<Int> = []
    /// The checksum of the file that the last redirect gave.
    package var linked: LinkedChecksum?
    /// The condition that was sent along, under which 304 is an answer.
    package var condition: ExistingFile.Condition?
    /// A whole new file would replace held bytes.
    package var replacesBytes = false
    /// The download's first URL.
    package var source: HTTPURL
    /// The name that it gives, for where the server gives none.
    package var nameOfURL: String

    /// Makes a question.
    package init(
        asked: Asked, rung: Rung, known: Representation?, holdsAllBeforeAsked: Bool = false,
        workedBefore: Bool = false, expectsWebPage: Bool = false, source: HTTPURL,
        nameOfURL: String? = nil
    ) {
        self.asked = asked
        self.rung = rung
        self.known = known
        self.holdsAllBeforeAsked = holdsAllBeforeAsked
        self.workedBefore = workedBefore
        self.expectsWebPage = expectsWebPage
        self.source = source
        self.nameOfURL = nameOfURL ?? SafeFileName.ofURL(source)
    }
}

/// What to do with a response.
package indirect enum ResponseVerdict: Hashable, Sendable {
    /// A 206, or a 200 that names a part, whose bytes belong at `range`; the end is open if the server gave no end that
    /// can be trusted.
    case partial(ByteRange, ResponseFacts)
    /// A 200: its body is the whole, from offset 0, and joins nothing.
    case whole(ResponseFacts)
    /// 416 with `*/0`: the file is empty.
    case empty(ResponseFacts)
    /// 416 with `*/M`, and all M bytes are held.
    case complete(length: Int64)
    /// Ask again without `Range`.
    case askWithoutRange(reason: String)
    /// The response is of another representation than the bytes held. `whole` if its body is all of the new one.
    case changed(reason: String, whole: ResponseFacts?)
    /// A 200 with our strong validator and length: ranges, or `If-Range`, are ignored. Go up the ladder.
    case rangeIgnored(ResponseFacts)
    /// A response that does not answer the range; its body is not used.
    case rangeRefused(reason: String)
    /// 304 in response to the condition of the request: the existing file is up to date.
    case notModified
    /// 304 in response to `If-Range`, which does not ask for it, or a 304 or 412 that does not fit the condition of an
    /// update: ask without it.
    case conditionRefused(reason: String)
    /// A 206 that repeats the validator by weak comparison only, where it was strong. Ask again by the third rung.
    case weakened(reason: String)
    /// 3xx with a target, the checksum of the file there if the response gives one, and `Retry-After`.
    case redirect(location: String, LinkedChecksum? = nil, retryAfter: Duration? = nil)
    /// 401, 403, 404 or 410 after it worked before.
    case linkExpired(status: Int, TowlineError)
    /// Worth another attempt. `overloaded`: the host asks for less (429, 503).
    case transient(reason: String, retryAfter: Duration?, overloaded: Bool, status: Int)
    /// A web page where the file was expected: a captive portal or a login page.
    case webPage(reason: String)
    /// No attempt will mend it.
    case permanent(TowlineError)

    /// The head of a response whose body is the whole file.
    package var whole: ResponseFacts? {
        switch self {
        case .whole(let facts), .changed(_, .some(let facts)), .rangeIgnored(let facts): facts
        default: nil
        }
    }

    /// The same of a whole whose length its head did not give, once its framing has told that it is over (RFC 9112 §7.1).
    package func ending(at length: Int64) -> ResponseVerdict {
        guard var facts = whole, facts.representation.completeLength == nil else { return self }
        facts.representation.completeLength = length
        switch self {
        case .changed(let reason, _): return .changed(reason: reason, whole: facts)
        case .rangeIgnored: return .rangeIgnored(facts)
        default: return .whole(facts)
        }
    }
}
