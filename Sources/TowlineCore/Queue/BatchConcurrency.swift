/// Decides how many downloads of a batch receive bytes at once.
///
/// The default is five, because each download may use sixteen connections. For short downloads, which spend most of
/// their time on requests, it is sixteen, the connection limit of a host (DESIGN.md §5), or the number that pays off
/// for a distant host (`ConnectionSearch`). For streams of one connection it is a hundred: RFC 9113 §6.5.2 recommends
/// that servers allow at least as many. For streams to a distant host it is the number that several connections carry
/// (`ConnectionSharing`).
package struct BatchConcurrency: Sendable {
    private static let usual = 5
    /// The number of streams of one connection.
    private static let streams = 100
    /// The highest limit unless the user sets a number.
    package static let most = ConnectionSharing.connections * ConnectionSharing.streams
    /// The mean time in seconds below which downloads count as short.
    private static let short = 1.0

    private let fixed: Int?
    private let affordable: Int
    /// The mean time of the last downloads in seconds. Each counts an eighth less than the one after it.
    private var mean: Double?
    /// The number of downloads that ended, up to two.
    private var count = 0
    /// The share of downloads over a shared connection. Each counts a quarter less than the one after it.
    private var shared = 0.0
    /// `true` if the last download used `ConnectionSharing.several`.
    private var sharesSeveral = false
    private var search = ConnectionSearch()
    /// The number of long downloads that receive bytes.
    private var longCount = 0
    /// The number of downloads that ran at once, and how many of them may still end after the limit was lowered.
    private var crowd = (size: ConnectionSearch.usual, left: ConnectionSearch.usual)

    /// The shortest wait that makes a download free its slot, and how many may do so in a row without success.
    private static let restful = Duration.milliseconds(500), mostInVain = 64
    /// The number of downloads that freed their slots since a download last received all its bytes.
    private var leftInVain = 0

    /// - Parameters:
    ///   - fixed: the number that the user set; `nil`: adapt to the downloads.
    ///   - affordable: the maximum number that the file descriptors allow.
    package init(fixed: Int? = nil, affordable: Int = .max) {
        self.fixed = fixed.map { max(1, $0) }
        self.affordable = max(1, affordable)
    }

    /// The number of downloads that may receive bytes at once now.
    package var limit: Int { min(wanted, affordable) }

    /// Returns the number of these downloads that may have connections of their own to a host.
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

    /// The limit for unshared connections. The result of the search does not apply to shared ones or to long files.
    private var unshared: Int {
        isUnshared && longCount < ConnectionSearch.usual ? search.limit : ConnectionSearch.usual
    }

    private var isUnshared: Bool { shared < 0.1 }

    /// Returns how many downloads the descriptors allow at once. Each needs a part file, a journal and a connection,
    /// and the process needs some itself.
    package static func affordable(descriptors: Int) -> Int { max(1, (descriptors - reserved) / 3) }

    /// Returns how many more downloads may wait for the disk, each with one descriptor. Most descriptors remain for
    /// downloads that receive bytes.
    package static func affordablePublishing(descriptors: Int) -> Int {
        min(mostPublishing, max(0, (descriptors - reserved) / 4))
    }

    /// The number of descriptors that the process needs: standard streams, event queues, directories, libraries.
    private static let reserved = 64
    /// The maximum number of downloads that wait for the disk: enough for many to share one sync.
    package static let mostPublishing = 256

    /// Records that a download received all its bytes, `duration` after it began.
    package mutating func fetched(
        after duration: Duration, _ sharing: ConnectionSharing = .none, from origin: HTTPURL.Origin? = nil,
        now: Duration
    ) {
        leftInVain = 0
        note(duration, sharing)
        if count > 1, isUnshared, isShort { search.fetched(after: duration, from: origin, now: now) }
    }

    /// Records that a download ended without all its bytes, `duration` after it began.
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

    /// Returns whether a download frees its slot while it waits for its next attempt, and counts the freed slot.
    ///
    /// A long download would get its slot back late, and a user who sets one download at a time wants them in order. If
    /// no download receives bytes any more, as without a network, a freed slot does not help the others. A wait that
    /// the server requested (`isAsked`) always frees the slot.
    package mutating func leavesPlace(for wait: Duration, isAsked: Bool, isLong: Bool) -> Bool {
        guard wait >= Self.restful, !isLong, fixed != 1 else { return false }
        guard !isAsked else { return true }
        guard leftInVain < Self.mostInVain else { return false }
        leftInVain += 1
        return true
    }

    /// Adds `number` to the number of long downloads that receive bytes.
    package mutating func tookUpLong(_ number: Int) { longCount += number }

    /// Records that an attempt of a download failed.
    package mutating func failed(at origin: HTTPURL.Origin, now: Duration) {
        search.failed(at: origin, now: now)
    }

    /// Records that a host reported overload.
    package mutating func refused(by origin: HTTPURL.Origin, now: Duration) { search.refused(by: origin, now: now) }
}
