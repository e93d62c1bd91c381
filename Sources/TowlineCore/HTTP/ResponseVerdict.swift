/// The verdict of `ResponseEvaluator` on a response: what its body is and what happens next.
package indirect enum ResponseVerdict: Hashable, Sendable {
    /// A 206, or a 200 with Content-Range, whose body is the given range of the file and may be written there.
    case partial(ByteRange, ResponseFacts)
    /// A 200: its body is the whole file from offset 0 and is not joined to other bytes.
    case whole(ResponseFacts)
    /// A 416 with `*/0`: the file is empty.
    case empty(ResponseFacts)
    /// A 416 with `*/M` when the part file has all M bytes: the download is complete.
    case complete(length: Int64)
    /// The server refused a range request. The request must be repeated without `Range`.
    case askWithoutRange(reason: String)
    /// The file on the server differs from the version whose bytes are in the part file. The body is the whole new file
    /// if `isWhole`.
    case changed(reason: String, ResponseFacts, isWhole: Bool)
    /// A 200 with the whole file that does not contradict the bytes in the part file: the server ignored the range or
    /// `If-Range`. The next weaker proof (`Rung`) is tried.
    case rangeIgnored(ResponseFacts)
    /// A response that does not fit the requested range, or does not prove that its bytes belong to the version of the
    /// file in the part file. Its body is not used; after repeated refusals, the whole file is requested.
    case rangeRefused(reason: String)
    /// A 304 in response to the condition of the request: the existing file at the destination is up to date.
    case notModified
    /// A 304 in response to `If-Range`, which does not permit 304, or a 304 or 412 that does not fit the condition of
    /// an update. The request must be repeated without the condition.
    case conditionRefused(reason: String)
    /// A 206 that repeats a strong validator by weak comparison only (`W/` was added). The next request uses the proof
    /// `Rung.weakWithOverlap`.
    case weakened(reason: String)
    /// A 3xx with a target, the checksum of the target file if the response gives it, and the delay of `Retry-After`.
    case redirect(location: String, LinkedChecksum? = nil, retryAfter: Duration? = nil)
    /// A 4xx such as 403 or 400 from a URL that worked before: its link has expired, or the server allows no further
    /// connection.
    case linkExpired(status: Int, TowlineError)
    /// A temporary error, after which the request is retried. `overloaded`: the host asks for fewer requests (429, 503,
    /// 509, 529).
    case transient(reason: String, retryAfter: Duration?, overloaded: Bool, status: Int)
    /// A web page instead of the expected file: a captive portal or a login page. Its body is not used.
    case webPage(reason: String)
    /// A permanent error, such as a 403 for a URL that never worked: the request is not retried.
    case permanent(TowlineError)

    /// The parsed head of the response if its body is the whole file; `nil` for other verdicts.
    package var whole: ResponseFacts? {
        switch self {
        case .whole(let facts), .changed(_, let facts, isWhole: true), .rangeIgnored(let facts): facts
        default: nil
        }
    }

    /// `true` for a redirect.
    var isRedirect: Bool { if case .redirect = self { true } else { false } }

    /// Returns the verdict with the length of the body added, if the body is the whole file and the head has no length.
    /// Called once the body has ended. A body that ended because its connection closed (`isDelimited` is `false`) may be
    /// incomplete (RFC 9112 §8), so its length is not that of the file.
    package func ending(at length: Int64, isDelimited: Bool = true) -> ResponseVerdict {
        changingWhole { facts in
            guard facts.representation.completeLength == nil else { return }
            if isDelimited { facts.representation.completeLength = length } else { facts.lengthAtClose = length }
        }
    }

    /// Returns the verdict with the first bytes of the body added, if the body is the whole file.
    package func beginning(with bytes: [UInt8]) -> ResponseVerdict {
        changingWhole { $0.firstBytes = Array(bytes.prefix(ResponseFacts.mostFirstBytes)) }
    }

    /// Returns the verdict with changed facts, if the body is the whole file.
    private func changingWhole(_ change: (inout ResponseFacts) -> Void) -> ResponseVerdict {
        guard var facts = whole else { return self }
        change(&facts)
        switch self {
        case .changed(let reason, _, let isWhole): return .changed(reason: reason, facts, isWhole: isWhole)
        case .rangeIgnored: return .rangeIgnored(facts)
        default: return .whole(facts)
        }
    }
}
