/// Tells when the machine's network changed, so that waits for it can end early.
///
/// A hint in both directions: a change may be of no use to a transfer, and a network may come back without one. So
/// nobody relies on it alone; the back-off of the retry table goes on beside it.
package protocol NetworkMonitor: AnyObject, Sendable {
    /// Whether something beyond this machine may be reached: there is a default route, or an interface other than the
    /// loopback is up and has an address. `true` where nothing is known.
    var isProbablyOnline: Bool { get }

    /// Each call makes a stream of its own. An element says that something changed since the last one: a link, an
    /// address or a route; changes within 200 ms are one element, and a slow reader finds one element, not a backlog.
    /// The stream ends with `close`, or when the reader's task is cancelled.
    func changes() -> AsyncStream<Void>

    /// Ends all streams and returns when no thread and no descriptor is left. A second call is no error.
    func close() async
}
