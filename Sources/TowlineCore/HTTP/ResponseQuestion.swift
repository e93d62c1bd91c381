/// A request and the length, validators and other properties of the file known when it was sent. `ResponseEvaluator`
/// uses it to judge the response.
package struct ResponseQuestion: Hashable, Sendable {
    /// The bytes that a request asks for with its `Range` field.
    package enum Asked: Hashable, Sendable {
        /// The whole file: the request has no `Range` field.
        case whole
        /// The bytes from this offset to the end of the file: `Range: bytes=lower-`.
        case from(Int64)
        /// The bytes of this range: `Range: bytes=lower-(upper-1)`.
        case range(ByteRange)

        /// The offset of the first requested byte in the file.
        package var lowerBound: Int64 {
            switch self {
            case .whole: 0
            case .from(let lower): lower
            case .range(let range): range.lowerBound
            }
        }

        /// Returns whether a response with the bytes `part` fits the request: the part begins at the first requested
        /// byte and does not end after the last one.
        func mayReach(_ part: ByteRange) -> Bool {
            switch self {
            case .whole: false
            case .from(let lower): part.lowerBound == lower
            case .range(let range): part.lowerBound == range.lowerBound && part.upperBound <= range.upperBound
            }
        }
    }

    /// The proof that a response has the same version of the file as the bytes in the part file, so that both may be
    /// joined; strongest first (docs/http-rules.md).
    package enum Rung: Hashable, Sendable, Comparable {
        /// No bytes are joined: the part file has no bytes yet, the whole file is requested, or no proof is available.
        case nothingToJoin
        /// (1) `If-Range` with a strong validator (ETag or date), so that the server sends a part only of the same
        /// version.
        case ifRange
        /// (2) A plain range whose 206 repeats the strong validator and the complete length.
        case repeatedValidator
        /// (3) An unchanged weak validator, an equal complete length, and 64 KiB of bytes in the part file that are
        /// requested again and compared.
        case weakWithOverlap
        /// (4) A checksum of the whole file, verified before the file gets its final name.
        case checksum
        /// No proof, as the user allowed (`--unsafe-resume`): only the complete length and the bytes requested again
        /// are compared.
        case unsafe
    }

    /// The bytes that the request asks for.
    package var asked: Asked
    /// The proof of the same version of the file that the response must give before its bytes may be joined to those in
    /// the part file.
    package var rung: Rung
    /// The metadata (length, ETag, dates) of the file as known from earlier responses; `nil` before the first response.
    package var known: Representation?
    /// `true` if the part file has every byte before the requested range. A 416 with this length then means that the
    /// file is complete.
    package var holdsAllBeforeAsked: Bool
    /// `true` if this URL, or the URL that redirected to it, returned bytes of the file before. A 4xx may then mean an
    /// expired link.
    package var workedBefore: Bool
    /// `true` if the file to download is a web page, according to the user or its earlier media type, so that a web
    /// page is accepted.
    package var expectsWebPage: Bool
    /// `true` if the request goes to a mirror. Its response must then give the complete length of the file, because
    /// files of different servers with different lengths are never the same file.
    package var asksMirror = false
    /// `true` if the request carries the user's name and password, or a token.
    package var sendsUser = false
    /// `true` if the user accepts a web page for every kind of file.
    package var acceptsWebPages = false
    /// The media type of the bytes in the part file, or of those that a download from the beginning replaces; `nil` if
    /// unknown. Used to recognize a login page.
    package var earlierMediaType: String?
    /// The file name that the user chose; `nil` if the user chose none.
    package var fileName: String?
    /// The content coding that only labelled the file in the response that the part file's bytes come from
    /// (`CodingLabel`).
    package var label = CodingLabel.unknown
    /// `true` if the user wants to ignore the checksums in responses.
    package var ignoresServerChecksums = false
    /// The HTTP statuses that are retried in addition to the usual ones (`--retry-on`).
    package var retryStatuses: Set<Int> = []
    /// `true` if the request goes to the origin of the download's first URL. Only this origin may name the checksum of a
    /// file at another URL (`LinkedChecksum`).
    package var isAtFirstOrigin = true
    /// The checksum of the file that the last redirect contained; `nil` if it contained none.
    package var linked: LinkedChecksum?
    /// The condition in the request ("only if the file differs from the existing one"), which permits a 304 response;
    /// `nil` without a condition.
    package var condition: ExistingFile.Condition?
    /// `true` if a response with a whole new file would replace the bytes, or the description, of an earlier response.
    package var replacesBytes = false
    /// The download's first URL, or the mirror's URL for a request to a mirror. Error messages name it.
    package var source: HTTPURL
    /// The safe file name from the last path component of `source`, used if the server suggests none.
    package var nameOfURL: String

    /// Creates the description of a request, against which `ResponseEvaluator` judges the response. If `nameOfURL` is
    /// `nil`, the name comes from `source`.
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
