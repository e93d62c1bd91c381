/// Decides whether requests to a host share a connection, each as a separate stream
/// (docs/internals/shared-connections.md).
///
/// If the last responses of a host over HTTP/2 were small, the next requests share a connection, and each asks for at
/// most `smallLimit` bytes. A longer file ends its stream and is requested again over its own connection. Each such
/// mistake doubles the number of small responses that are needed before sharing; many small responses in a row halve
/// that number.
package struct SharingPolicy: Hashable, Sendable {
    /// The result of a response, which speaks for or against sending the next requests to its host over a shared
    /// connection.
    package enum Evidence: Hashable, Sendable {
        /// The body is complete and at most `smallLimit` bytes long: the next requests may share a connection.
        case small
        /// The body is long, or its length is unknown: the next requests should not share a connection.
        case long
        /// The body is missing or incomplete, or was not sent as an HTTP/2 stream: the next requests should not share a
        /// connection.
        case broken

        /// Creates the result that a response head promises, before its body has arrived: whether the next requests may
        /// share a connection.
        ///
        /// - Parameter length: the length in bytes; `nil` if the head has no length, or the body is not a whole file.
        package init(promisedLength length: Int64?) {
            self = (length ?? .max) <= SharingPolicy.smallLimit ? .small : .long
        }

        /// Creates the result of an attempt that ended: whether the next requests may share a connection. Returns `nil`
        /// if the end does not show this, for example because the user cancelled the attempt.
        ///
        /// - Parameters:
        ///   - shared: `true` if the request was meant to share its connection, as one of several streams.
        ///   - isStream: `true` if the response came over HTTP/2.
        ///   - promise: the evidence expected from the response head; `nil` if the body was not wanted.
        package init?(_ result: AttemptResult, shared: Bool, isStream: Bool, promise: Evidence?) {
            switch result {
            // A small response ends in this way if there is no memory for it.
            case .needsOwnConnection where promise == .small: return nil
            case .needsOwnConnection: self = .long
            case .failed where shared, .complete where shared && !isStream: self = .broken
            case .complete where isStream && promise == .small: self = .small
            default: return nil
            }
        }
    }

    /// The length in bytes of the longest file that is downloaded over a shared connection.
    package static let smallLimit: Int64 = 256 << 10

    /// The initial number of consecutive small responses that a host must send before requests share a connection
    /// (`needed`).
    private static let firstRun = 2
    /// The maximum of `needed` (the small responses required before requests share a connection), and the number of
    /// consecutive small responses after which `needed` is halved.
    private static let longestRun = 64
    /// The minimum latency of a distant host, measured at the fastest response. The mean latency is unsuitable, because
    /// it grows with the number of simultaneous requests.
    private static let far = Duration.milliseconds(40)

    /// The number of consecutive small responses that the host has sent. When it reaches `needed`, requests begin to
    /// share a connection.
    private var small = 0
    /// The number of consecutive small responses that the host must send before requests share a connection.
    private var needed = Self.firstRun
    /// The shortest time from a request to the start of a small response, which shows whether the host is distant.
    private var least: Duration?
    /// `true` if the host was distant when requests began to share, so that they share several connections. A later
    /// change opens no other connections.
    private var isFar = false

    /// Creates a policy for a host without known responses: requests do not share.
    package init() {}

    /// `true` if the policy differs from a new one, so that the record of the host must stay in memory for the next
    /// requests.
    package var isWorthKeeping: Bool { shares || needed > Self.firstRun }

    /// `true` if the next requests to the host share a connection.
    private var shares: Bool { small >= needed }

    /// The way in which the next requests to the host use connections: each its own, all one, or a few each of several.
    package var sharing: ConnectionSharing { shares ? isFar ? .several : .one : .none }

    /// Returns whether a request for a possibly small file goes to the network thread with the least work instead of
    /// the first one. Each thread has its own connections: too many for a host with a connection limit (`hostCeiling`),
    /// and with `several` the threads would share twice as many.
    package static func spreads(_ plan: AttemptPlan, hostCeiling: Int?) -> Bool {
        plan.mayBringWhole && plan.sharing != .several && hostCeiling == nil
    }

    /// Records the result (`evidence`) of a response over HTTP/2, complete or abandoned, which may change whether the
    /// next requests to the host share a connection.
    ///
    /// - Parameter latency: the time from the request to the start of a small response.
    package mutating func answered(_ evidence: Evidence, after latency: Duration = .zero) {
        switch evidence {
        case .small:
            least = min(least ?? latency, latency)
            if !shares { isFar = (least ?? .zero) >= Self.far }
            small += 1
            guard small >= max(needed, Self.longestRun) else { break }
            // After this many in a row, an old mistake counts half.
            needed = max(needed / 2, Self.firstRun)
            small = needed
        case .long, .broken:
            if shares { needed = min(needed * 2, Self.longestRun) }
            small = 0
        }
    }
}
