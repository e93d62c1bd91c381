package import TowlineCore

/// Reports changes of the machine's network, so that a download that waits for the network can retry early.
///
/// Reports are hints: a change may not help a transfer, and the network may recover without a reported change. The
/// retry timers (back-off) therefore continue independently.
package protocol NetworkMonitor: AnyObject, Sendable {
    /// The state of the network as last reported, or as it was when the monitor was created.
    var state: NetworkState { get }

    /// Returns a new stream of network changes. An element means that a link, an address or a route changed since the
    /// previous element, and is the state afterwards, which may be the same as before. Changes within 200 ms are one
    /// element, and a slow reader finds one element, not a backlog. The stream ends with `close`, or when the reader's
    /// task is cancelled.
    func changes() -> AsyncStream<NetworkState>

    /// Ends all streams, stops the monitor's threads and closes its descriptors before it returns. A second call has no
    /// effect.
    func close() async
}
