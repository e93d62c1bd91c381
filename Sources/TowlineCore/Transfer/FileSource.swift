/// Where an attempt asks: at the URL that says what the file is, or at a mirror of it.
package enum SourceID: Hashable, Sendable {
    /// The user's first URL; or the mirror that took its place because nothing ever came of that.
    case primary
    /// The mirror of that index.
    case mirror(Int)
}

/// A place to get the file from, and what is known of it.
struct FileSource: Sendable {
    /// As the user named it.
    let url: HTTPURL
    /// The file's name by that URL.
    let nameOfURL: String
    /// Where it led.
    var resolved: HTTPURL
    /// It is not asked before; the primary's is the transfer's own.
    var notBefore: Duration?
    /// Times in a row that nothing came of it.
    var failures = 0
    /// Tries in a row that brought no byte, whether they were answered or not.
    var tries = 0
    /// Why it is asked no more.
    var leftOut: TowlineError?
    /// It has answered as it should.
    var hasWorked = false
    /// It cuts ranges so short that what is compared was all of one.
    var givesOverlapAlone = false
    /// What a connection lately brought there, in bytes per second.
    var rate: Double?
    /// It allows no more connections, for a while.
    var ceiling: Int?
    var ceilingEnd = Duration.zero
    /// Whether it has the primary's bytes, as far as a sample tells.
    var sample = Sample.open
    /// All of its bytes came, and no others, and the user's checksum does not match them.
    var isRefuted = false
    /// What came from there and was written.
    var brought = ByteRangeSet()

    /// What came of asking a mirror for bytes that are there.
    enum Sample: Sendable {
        /// Nobody asked yet.
        case open
        case same
        /// Its bytes are others, or it has more or fewer.
        case differs
        /// It gives no sample.
        case unknown
    }

    init(_ url: HTTPURL, nameOfURL: String? = nil) {
        self.url = url
        self.nameOfURL = nameOfURL ?? SafeFileName.ofURL(url)
        resolved = url
    }

    /// A refusal may have been a passing one.
    static let ceilingLife = Duration.seconds(60)

    /// The connections that it allows; `nil`: nothing is known.
    func ceiling(at now: Duration) -> Int? { ceilingEnd > now ? ceiling : nil }

    mutating func limit(to count: Int, now: Duration) {
        ceiling = max(1, min(ceiling(at: now) ?? count, count))
        ceilingEnd = now + Self.ceilingLife
    }
}
