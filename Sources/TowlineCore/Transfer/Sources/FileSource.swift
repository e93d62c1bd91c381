/// The source that an attempt requests bytes from: the URL that defines the file, or a mirror of it.
package enum SourceID: Hashable, Sendable {
    /// The user's first URL, or the mirror that replaced it because it never delivered the file.
    case primary
    /// The mirror at this index in the transfer's list of mirrors.
    case mirror(Int)
}

/// A URL that serves the file, and the results of earlier requests to this URL.
struct FileSource: Sendable {
    /// The URL of the source as the user gave it.
    let url: HTTPURL
    /// The file name in the URL, used if neither the user nor the server names the file.
    let nameOfURL: String
    /// The URL that requests are sent to: the end of the redirects that begin at `url`.
    var resolved: HTTPURL
    /// The earliest time of the next request to this source, after a failure or a pause that the server requested;
    /// `nil` if no wait is set.
    var notBefore: Duration?
    /// The number of consecutive failures of this source, which decides how long the next wait is.
    var failures = 0
    /// The number of consecutive attempts at this source that received no byte, with or without a response. Before the
    /// first byte of a file with mirrors, the retry limit applies to it.
    var tries = 0
    /// The reason why this source is no longer used; `nil` while it is used.
    var leftOut: TowlineError?
    /// `true` if the source, a mirror, has sent a valid response to a range request.
    var hasWorked = false
    /// `true` if the server shortens ranges so much that a response contained only the overlap: the bytes before the
    /// resume point that are requested again for comparison. Later requests omit the overlap.
    var givesOverlapAlone = false
    /// The rate of the last connection to this source, in bytes per second, to choose the fastest source; `nil` while
    /// unknown.
    var rate: Double?
    /// The maximum number of connections that the source allows, learned from a refusal; `nil`: not known.
    var ceiling: Int?
    /// The time at which the connection limit `ceiling` expires.
    var ceilingEnd = Duration.zero
    /// The result of comparing some of a mirror's bytes with those of the primary source, which defines the file.
    var sample = Sample.open
    /// `true` if the file as this source sends it does not match the user's checksum.
    var isRefuted = false
    /// The written bytes that came from this source, a mirror. They are downloaded again if it turns out to be wrong.
    var brought = ByteRangeSet()

    /// The result of requesting bytes from a mirror that are already written, to compare both.
    enum Sample: Sendable {
        /// No comparison of the mirror's bytes with those of the primary source has ended yet.
        case open
        case same
        /// The mirror has other bytes, or another length, and is not used.
        case differs
        /// The mirror sent too few bytes for a comparison and is not asked for more.
        case unknown
    }

    init(_ url: HTTPURL, nameOfURL: String? = nil) {
        self.url = url
        self.nameOfURL = nameOfURL ?? SafeFileName.ofURL(url)
        resolved = url
    }

    /// The time after which the connection limit of a source expires, because the refusal that caused it may have been
    /// temporary.
    static let ceilingLife = Duration.seconds(60)

    /// Delays the next request until the given time, if it is not delayed for longer already.
    mutating func wait(until time: Duration) { notBefore = max(notBefore ?? .zero, time) }

    /// Returns the maximum number of connections that the source allows; `nil` if no limit is known.
    func ceiling(at now: Duration) -> Int? { ceilingEnd > now ? ceiling : nil }

    /// Lowers the source's connection limit to `count`, but not below 1, for `ceilingLife`.
    mutating func limit(to count: Int, now: Duration) {
        ceiling = max(1, min(ceiling(at: now) ?? count, count))
        ceilingEnd = now + Self.ceilingLife
    }
}
