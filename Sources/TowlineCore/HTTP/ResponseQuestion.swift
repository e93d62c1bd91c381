/// The request of an attempt and the facts known at that time: the input for judging the response.
package struct ResponseQuestion: Hashable, Sendable {
    /// The requested bytes.
    package enum Asked: Hashable, Sendable {
        /// No `Range` field: the whole file.
        case whole
        /// `bytes=lower-` with an open end.
        case from(Int64)
        /// `bytes=lower-(upper-1)`.
        case range(ByteRange)

        /// The offset of the first requested byte.
        package var lowerBound: Int64 {
            switch self {
            case .whole: 0
            case .from(let lower): lower
            case .range(let range): range.lowerBound
            }
        }

        /// Returns whether a part may be the response: it begins at the first requested byte and does not end later.
        func mayReach(_ part: ByteRange) -> Bool {
            switch self {
            case .whole: false
            case .from(let lower): part.lowerBound == lower
            case .range(let range): part.lowerBound == range.lowerBound && part.upperBound <= range.upperBound
            }
        }
    }

    /// A rung of the proof ladder: the proof for joining the bytes of an attempt to the held bytes (DESIGN.md §4).
    package enum Rung: Hashable, Sendable, Comparable {
        /// No bytes are held or written by other attempts: no bytes are joined.
        case nothingToJoin
        /// (1) `If-Range` with a strong validator.
        case ifRange
        /// (2) A plain range whose 206 repeats the strong validator and the complete length.
        case repeatedValidator
        /// (3) An unchanged weak validator, an equal complete length, and an overlap of 64 KiB.
        case weakWithOverlap
        /// (4) A checksum of the whole file, verified before publishing.
        case checksum
        /// The user allowed it: only length and overlap are checked.
        case unsafe
    }

    /// The requested bytes.
    package var asked: Asked
    /// The proof that this attempt uses.
    package var rung: Rung
    /// The known metadata of the representation; `nil` before the first response.
    package var known: Representation?
    /// `true` if every byte before the requested range is held.
    package var holdsAllBeforeAsked: Bool
    /// `true` if this URL, or the URL that redirected to it, returned bytes of the file before.
    package var workedBefore: Bool
    /// `true` if the download is a web page according to the user or its earlier media type.
    package var expectsWebPage: Bool
    /// `true` if the request goes to a mirror, whose response must give the complete length on every rung.
    package var asksMirror = false
    /// `true` if the request carries the user's name and password, or a token.
    package var sendsUser = false
    /// `true` if the user accepts a web page for every kind of file.
    package var acceptsWebPages = false
    /// The media type of the held bytes, or of the bytes in the part file after a restart.
    package var earlierMediaType: String?
    /// The file name that the user chose.
    package var fileName: String?
    /// The label of the held bytes.
    package var label = CodingLabel.unknown
    /// `true` to ignore the checksums in responses.
    package var ignoresServerChecksums = false
    /// The statuses that the user declared transient.
    package var retryStatuses: Set<Int> = []
    /// The checksum of the file from the last redirect.
    package var linked: LinkedChecksum?
    /// The condition in the request, which permits a 304 response; `nil` for none.
    package var condition: ExistingFile.Condition?
    /// `true` if a whole new file would replace held bytes.
    package var replacesBytes = false
    /// The download's first URL.
    package var source: HTTPURL
    /// The file name from `source`, used if the server gives none.
    package var nameOfURL: String

    /// Creates a question.
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

/// The verdict on a response.
package indirect enum ResponseVerdict: Hashable, Sendable {
    /// A 206, or a 200 with Content-Range, whose bytes belong at the given range.
    case partial(ByteRange, ResponseFacts)
    /// A 200: its body is the whole file from offset 0 and is not joined to other bytes.
    case whole(ResponseFacts)
    /// A 416 with `*/0`: the file is empty.
    case empty(ResponseFacts)
    /// A 416 with `*/M` when all M bytes are held.
    case complete(length: Int64)
    /// The attempt must be repeated without `Range`.
    case askWithoutRange(reason: String)
    /// The response has another representation than the held bytes. `whole` is set if its body is the whole new file.
    case changed(reason: String, whole: ResponseFacts?)
    /// A 200 that does not contradict the held bytes: the server ignored the range or `If-Range`. Try the next rung.
    case rangeIgnored(ResponseFacts)
    /// A response that does not fit the requested range; its body is not used.
    case rangeRefused(reason: String)
    /// A 304 in response to the condition of the request: the existing file is up to date.
    case notModified
    /// A 304 in response to `If-Range`, which does not permit 304, or a 304 or 412 that does not fit the condition of
    /// an update. The attempt must be repeated without the condition.
    case conditionRefused(reason: String)
    /// A 206 that repeats a strong validator by weak comparison only. Try the third rung.
    case weakened(reason: String)
    /// A 3xx with a target, the checksum of the target file if the response gives it, and `Retry-After`.
    case redirect(location: String, LinkedChecksum? = nil, retryAfter: Duration? = nil)
    /// A 401, 403, 404 or 410 from a URL that worked before.
    case linkExpired(status: Int, TowlineError)
    /// A transient error, which is retried. `overloaded`: the host asks for fewer requests (429, 503, 509, 529).
    case transient(reason: String, retryAfter: Duration?, overloaded: Bool, status: Int)
    /// A web page instead of the expected file: a captive portal or a login page.
    case webPage(reason: String)
    /// A permanent error, which is not retried.
    case permanent(TowlineError)

    /// The head of a response whose body is the whole file.
    package var whole: ResponseFacts? {
        switch self {
        case .whole(let facts), .changed(_, .some(let facts)), .rangeIgnored(let facts): facts
        default: nil
        }
    }

    /// Returns the verdict with the complete length added, if the head gave none. Called once the framing has shown the
    /// end of the body (RFC 9112 §7.1).
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
