/// Whether requests to a host share a connection, each as a stream of its own (RFC 9113 §5).
///
/// Segments of a long file gain nothing by that: one connection is one window, and each loss holds up all. What a small
/// file costs is mostly its connection, a handshake and the wait for it. So a host whose last answers over HTTP/2 were
/// small is asked for the next over one that is shared, for no more than `smallLimit` of each. Whatever turns out to be
/// longer ends its stream and is asked for once more over a connection of its own; each such mistake makes the next guess
/// take twice as many small answers, until many in a row halve that.
package struct SharingPolicy: Hashable, Sendable {
    /// How an answer's body looked.
    package enum Answer: Hashable, Sendable {
        /// All of it came, and it was small.
        case small
        /// It is long, or nobody knows.
        case long
        /// Nothing came, or not all, or not as a stream.
        case broken

        /// What a head promises of a body that is wanted.
        ///
        /// - Parameter length: `nil`: it does not say, or what comes is no whole file.
        package init(promisedLength length: Int64?) {
            self = (length ?? .max) <= SharingPolicy.smallLimit ? .small : .long
        }

        /// What the end of an attempt says; `nil`: nothing.
        ///
        /// - Parameters:
        ///   - shared: it was to be one of several streams.
        ///   - isStream: its answer came over HTTP/2.
        ///   - promise: what its head promised, if its body was wanted.
        package init?(_ result: AttemptResult, shared: Bool, isStream: Bool, promise: Answer?) {
            switch result {
            // A small one that is sent away had no room in memory.
            case .needsOwnConnection where promise == .small: return nil
            case .needsOwnConnection: self = .long
            case .failed where shared, .complete where shared && !isStream: self = .broken
            case .complete where isStream && promise == .small: self = .small
            default: return nil
            }
        }
    }

    /// So long is a file at most that is asked for over a connection that is shared.
    package static let smallLimit: Int64 = 256 << 10

    private static let firstRun = 2
    private static let longestRun = 64
    /// Where not even the quickest answer took less to begin, they come from far away. The mean would not tell: it grows with
    /// how many are asked for at once.
    private static let far = Duration.milliseconds(40)

    /// Small answers in a row.
    private var small = 0
    /// So many are needed.
    private var needed = Self.firstRun
    /// What the quickest small answer took to begin.
    private var least: Duration?
    /// It was so when they began to share. What changes later is no reason for other connections.
    private var isFar = false

    /// Nothing is known.
    package init() {}

    /// Whether it says more than that nothing is known.
    package var isWorthKeeping: Bool { shares || needed > Self.firstRun }

    /// Whether the next requests share.
    private var shares: Bool { small >= needed }

    /// How the next requests share connections.
    package var sharing: ConnectionSharing { shares ? isFar ? .several : .one : .none }

    /// Whether what may be a small file goes to whichever engine thread has least to do. Each has connections of its own: that
    /// is too many for a host that allows few, and where several are shared the threads would share twice as many.
    package static func spreads(_ plan: AttemptPlan, hostCeiling: Int?) -> Bool {
        plan.mayBringWhole && plan.sharing != .several && hostCeiling == nil
    }

    /// An answer came over HTTP/2, or was given up there.
    ///
    /// - Parameter latency: what a small one took to begin.
    package mutating func answered(_ answer: Answer, after latency: Duration = .zero) {
        switch answer {
        case .small:
            least = min(least ?? latency, latency)
            if !shares { isFar = (least ?? .zero) >= Self.far }
            small += 1
            guard small >= max(needed, Self.longestRun) else { break }
            // So many in a row, and an old mistake counts half.
            needed = max(needed / 2, Self.firstRun)
            small = needed
        case .long, .broken:
            if shares { needed = min(needed * 2, Self.longestRun) }
            small = 0
        }
    }
}
