/// How many downloads of a batch fetch at once.
///
/// Unless the user says, five: each may take sixteen connections. While they are so short that most of their time goes
/// for asking, sixteen, which is what one host gets anyway (DESIGN.md §5), or as many as pay off where they come from far away
/// (`ConnectionSearch`). Where they are streams of one connection, what a server is usually ready for at once: RFC 9113 §6.5.2
/// recommends that it be no less than a hundred. Where each has to come a long way, as many as several connections bear
/// (`ConnectionSharing`).
package struct BatchConcurrency: Sendable {
    private static let usual = 5
    /// As many streams as a connection bears.
    private static let streams = 100
    /// As many as these are unless the user says.
    package static let most = ConnectionSharing.connections * ConnectionSharing.streams
    /// Downloads that take less, on average of the last ones, are short.
    private static let short = 1.0

    private let fixed: Int?
    private let affordable: Int
    /// Seconds that the last ones took, each counting an eighth less than the one after it.
    private var mean: Double?
    /// How many there were, up to two.
    private var count = 0
    /// Which share of them came over a connection that others share, each counting a quarter less than the one after it.
    private var shared = 0.0
    /// Whether the last one shared several.
    private var sharesSeveral = false
    private var search = ConnectionSearch()
    /// How many of those that are fetched are long.
    private var longCount = 0
    /// How many there were beside each other, and how many of those may still come.
    private var crowd = (size: ConnectionSearch.usual, left: ConnectionSearch.usual)

    /// A wait for the next attempt that is worth leaving a place for, and how many may do so in a row.
    private static let restful = Duration.milliseconds(500), mostInVain = 64
    /// So many left their places since one had its bytes.
    private var leftInVain = 0

    /// - Parameters:
    ///   - fixed: what the user says; `nil`: whatever suits the downloads.
    ///   - affordable: there are descriptors for so many.
    package init(fixed: Int? = nil, affordable: Int = .max) {
        self.fixed = fixed.map { max(1, $0) }
        self.affordable = max(1, affordable)
    }

    /// So many at once now.
    package var limit: Int { min(wanted, affordable) }

    /// So many of them may have connections of their own to a host.
    package func connections(to origin: HTTPURL.Origin) -> Int {
        fixed ?? (search.origin == origin ? unshared : ConnectionSearch.usual)
    }

    private var wanted: Int {
        if let fixed { return fixed }
        // The second one tells whether the next share a connection (`SharingPolicy`): until then none is opened for them.
        guard count > 1, isShort else { return Self.usual }
        guard shared > 0.9 else { return unshared }
        return sharesSeveral ? Self.most : Self.streams
    }

    private var isShort: Bool { mean.map { $0 < Self.short } ?? false }

    /// What was found is of connections that nobody shares, and not of long files.
    private var unshared: Int {
        isUnshared && longCount < ConnectionSearch.usual ? search.limit : ConnectionSearch.usual
    }

    private var isUnshared: Bool { shared < 0.1 }

    /// For so many at once there are descriptors: a part file, its journal and a connection each, and some for the process.
    package static func affordable(descriptors: Int) -> Int { max(1, (descriptors - reserved) / 3) }

    /// So many more may wait for the disk with a descriptor each; they leave most to those that fetch.
    package static func affordablePublishing(descriptors: Int) -> Int {
        min(mostPublishing, max(0, (descriptors - reserved) / 4))
    }

    /// What the process itself needs: standard streams, event queues, directories, libraries.
    private static let reserved = 64
    /// Enough for one sync to be shared by many.
    package static let mostPublishing = 256

    /// A download has its bytes, so long after it began.
    package mutating func fetched(
        after duration: Duration, _ sharing: ConnectionSharing = .none, from origin: HTTPURL.Origin? = nil,
        now: Duration
    ) {
        leftInVain = 0
        note(duration, sharing)
        if count > 1, isUnshared, isShort { search.fetched(after: duration, from: origin, now: now) }
    }

    /// A download is over without, so long after it began.
    package mutating func ended(after duration: Duration) { note(duration, .none) }

    private mutating func note(_ duration: Duration, _ sharing: ConnectionSharing) {
        count = min(count + 1, 2)
        shared += ((sharing != .none ? 1 : 0) - shared) / 4
        sharesSeveral = sharing == .several
        // Four times as many may take four times as long without being longer, the last of them when there are fewer again.
        if search.limit >= crowd.size {
            crowd = (search.limit, search.limit)
        } else {
            crowd.left -= 1
            if crowd.left == 0 { crowd = (search.limit, search.limit) }
        }
        let seconds = duration.seconds * Double(ConnectionSearch.usual) / Double(crowd.size)
        mean = mean.map { $0 + (seconds - $0) / 8 } ?? seconds
    }

    /// Whether a download leaves its place to others while it waits so long for its next attempt. If so it does.
    ///
    /// One of a file that is long would get it back late, and who wants one at a time wants one after the other. Where none
    /// gets its bytes any more the others are not better off, as when the network is gone; but those are that wait because
    /// their server asked for it.
    package mutating func leavesPlace(for wait: Duration, isAsked: Bool, isLong: Bool) -> Bool {
        guard wait >= Self.restful, !isLong, fixed != 1 else { return false }
        guard !isAsked else { return true }
        guard leftInVain < Self.mostInVain else { return false }
        leftInVain += 1
        return true
    }

    /// So many more are fetched that are long.
    package mutating func tookUpLong(_ number: Int) { longCount += number }

    /// An attempt of one failed.
    package mutating func failed(at origin: HTTPURL.Origin, now: Duration) {
        search.failed(at: origin, now: now)
    }

    /// A host says that it is asked for too much.
    package mutating func refused(by origin: HTTPURL.Origin, now: Duration) { search.refused(by: origin, now: now) }
}
