/// Decides how many downloads of a batch (the URLs of one `tow get` command) receive bytes in parallel
/// (docs/internals/list-concurrency.md).
///
/// The default is five, because each download may use sixteen connections. For short downloads it is sixteen, the
/// connection limit of a host, or the number that a measurement (`ConnectionSearch`) finds to be the fastest for a
/// distant host. For streams of shared connections it is a hundred or more (RFC 9113 §6.5.2).
package struct BatchConcurrency: Sendable {
    /// The number of parallel downloads of a batch if they are not known to be short.
    private static let usual = 5
    /// The limit for downloads of a batch that are streams of one shared HTTP/2 connection.
    private static let streams = 100
    /// The highest number of parallel downloads of a batch, unless the user sets a number.
    package static let most = ConnectionSharing.connections * ConnectionSharing.streams
    /// The mean time of a download in seconds below which the downloads count as short.
    private static let short = 1.0

    /// The number of parallel downloads that the user set; `nil`: adapt to the downloads.
    private let fixed: Int?
    /// The maximum number of parallel downloads that the process's file descriptor limit allows.
    private let affordable: Int
    /// The mean time of the last downloads in seconds, which decides whether downloads count as short; `nil` before the
    /// first. Each download counts an eighth less than the next one.
    private var mean: Double?
    /// The number of downloads that ended, counted only up to two: before the second, the default of five downloads
    /// applies.
    private var count = 0
    /// The fraction (0 … 1) of the last downloads that used a shared connection; above 0.9, the limit for shared
    /// connections applies. Each download counts a quarter less than the next one.
    private var shared = 0.0
    /// `true` if the last download was a stream of one of several shared connections (`ConnectionSharing.several`). The
    /// limit is then `most`.
    private var sharesSeveral = false
    /// The measurement of how many short downloads with their own connections are fastest in parallel.
    private var search = ConnectionSearch()
    /// The number of downloads of long files that receive bytes. From sixteen on, the number of simultaneous small
    /// downloads that `ConnectionSearch` measured as the fastest does not apply.
    private var longCount = 0
    /// `size`: the number of downloads that ran in parallel while the last download times were measured. `left`: how
    /// many of these downloads have yet to end before a lowered limit becomes the new `size`.
    private var crowd = (size: ConnectionSearch.usual, left: ConnectionSearch.usual)

    /// The minimum wait before a retry that makes a download free its slot (its place among the `limit` downloads), and
    /// the maximum number of slots that are freed in a row while no download completes.
    private static let restful = Duration.milliseconds(500), mostInVain = 64
    /// The number of slots that waiting downloads freed since a download last received all its bytes. At `mostInVain`,
    /// no more slots are freed.
    private var leftInVain = 0

    /// Creates the limit for the number of downloads of a batch that receive bytes in parallel.
    ///
    /// - Parameters:
    ///   - fixed: the number of parallel downloads that the user set; `nil`: adapt to the downloads.
    ///   - affordable: the maximum number of parallel downloads that the process's file descriptor limit allows.
    package init(fixed: Int? = nil, affordable: Int = .max) {
        self.fixed = fixed.map { max(1, $0) }
        self.affordable = max(1, affordable)
    }

    /// The number of downloads of the batch that may receive bytes in parallel now.
    package var limit: Int { min(wanted, affordable) }

    /// Returns how many downloads of the batch may have their own, unshared connections to the host `origin` in
    /// parallel.
    package func connections(to origin: HTTPURL.Origin) -> Int {
        fixed ?? (search.origin == origin ? unshared : ConnectionSearch.usual)
    }

    private var wanted: Int {
        if let fixed { return fixed }
        // The second download shows whether the next ones share a connection (`SharingPolicy`). Until then, no
        // connections are opened for them.
        guard count > 1, isShort else { return Self.usual }
        guard shared > 0.9 else { return unshared }
        return sharesSeveral ? Self.most : Self.streams
    }

    private var isShort: Bool { mean.map { $0 < Self.short } ?? false }

    /// The limit for downloads with their own connections: the number that `ConnectionSearch` measured as the fastest,
    /// or sixteen if connections are shared or sixteen files are long.
    private var unshared: Int {
        isUnshared && longCount < ConnectionSearch.usual ? search.limit : ConnectionSearch.usual
    }

    private var isUnshared: Bool { shared < 0.1 }

    /// Returns how many parallel downloads a limit of `descriptors` file descriptors allows, at least 1. Each needs a
    /// part file, a journal and a connection, and the process needs some itself.
    package static func affordable(descriptors: Int) -> Int { max(1, (descriptors - reserved) / 3) }

    /// Returns how many complete downloads may wait for the sync to disk, in addition to those that receive bytes. Each
    /// waiting one needs one of the process's `descriptors`; most of these remain for the receiving ones.
    package static func affordablePublishing(descriptors: Int) -> Int {
        min(mostPublishing, max(0, (descriptors - reserved) / 4))
    }

    /// The number of file descriptors that the process itself needs: standard streams, event queues, directories,
    /// libraries.
    private static let reserved = 64
    /// The maximum number of complete downloads that wait for the sync to disk: enough for many files to share one
    /// sync.
    package static let mostPublishing = 256

    /// Records that a download of the batch received all its bytes, `duration` after it began. `origin` is its host
    /// (`nil`: unknown), and `sharing` says whether it shared a connection.
    package mutating func fetched(
        after duration: Duration, _ sharing: ConnectionSharing = .none, from origin: HTTPURL.Origin? = nil,
        now: Duration
    ) {
        leftInVain = 0
        note(duration, sharing)
        if count > 1, isUnshared, isShort { search.fetched(after: duration, from: origin, now: now) }
    }

    /// Records that a download of the batch ended without all its bytes, `duration` after it began. The duration counts
    /// for the mean time of downloads.
    package mutating func ended(after duration: Duration) { note(duration, .none) }

    private mutating func note(_ duration: Duration, _ sharing: ConnectionSharing) {
        count = min(count + 1, 2)
        shared += ((sharing != .none ? 1 : 0) - shared) / 4
        sharesSeveral = sharing == .several
        // Four times as many downloads may each take four times as long without being longer. The last of them may end
        // when fewer run again.
        if search.limit >= crowd.size {
            crowd = (search.limit, search.limit)
        } else {
            crowd.left -= 1
            if crowd.left == 0 { crowd = (search.limit, search.limit) }
        }
        let seconds = duration.seconds * Double(ConnectionSearch.usual) / Double(crowd.size)
        mean = mean.map { $0 + (seconds - $0) / 8 } ?? seconds
    }

    /// Returns whether a download frees its slot (its place among the `limit` downloads) while it waits for its next
    /// attempt, the time `wait` from now. Counts the freed slot.
    ///
    /// A download of a long file (`isLong`) would get its slot back late, and a user who sets one download at a time
    /// wants them in order. If no download receives bytes any more, as without a network, a freed slot does not help
    /// the others. A wait that the server requested (`isAsked`) frees the slot even then.
    package mutating func leavesPlace(for wait: Duration, isAsked: Bool, isLong: Bool) -> Bool {
        guard wait >= Self.restful, !isLong, fixed != 1 else { return false }
        guard !isAsked else { return true }
        guard leftInVain < Self.mostInVain else { return false }
        leftInVain += 1
        return true
    }

    /// Adds `number`, negative for downloads that end, to the number of downloads of long files that receive bytes.
    /// From sixteen on, the number of downloads that `ConnectionSearch` measured as the fastest does not apply.
    package mutating func tookUpLong(_ number: Int) { longCount += number }

    /// Records that a request to the host `origin` failed; too many connections may be the reason, so the limit may
    /// drop.
    package mutating func failed(at origin: HTTPURL.Origin, now: Duration) {
        search.failed(at: origin, now: now)
    }

    /// Records that the host `origin` asked for fewer requests or connections. For an hour, the number of simultaneous
    /// downloads is not raised for this host.
    package mutating func refused(by origin: HTTPURL.Origin, now: Duration) { search.refused(by: origin, now: now) }
}
