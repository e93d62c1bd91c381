package import TowlineCore

/// Reports changes of the machine's network, so that a download that waits for the network can retry early.
///
/// Reports are hints: a change may not help a transfer, and the network may recover without a reported change. The
/// retry timers (back-off) therefore continue independently.
package protocol NetworkMonitor: AnyObject, Sendable {
    /// The state of the network, such as available, as last reported, or as it was when the monitor was created.
    var state: NetworkState { get }

    /// Returns a new stream of the network's state after each change of a link, an address or a route. Changes within
    /// 200 ms are one element, and a slow reader gets only the last; the stream ends with `close` or when the reader's
    /// task is cancelled.
    func changes() -> AsyncStream<NetworkState>

    /// Ends all streams, stops the monitor's threads and closes its descriptors before it returns. A second call has no
    /// effect.
    func close() async
}
