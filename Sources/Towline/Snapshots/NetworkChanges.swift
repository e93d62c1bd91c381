public import TowlineCore

/// An asynchronous sequence of the changes of ``Downloader/network``, for one reader. Each element is the new state.
public struct NetworkChanges: AsyncSequence, Sendable {
    let states: AsyncStream<NetworkState>
    /// The state of the machine's network when the sequence was created.
    let first: NetworkState

    /// Returns the iterator. The sequence ends when the ``Downloader`` is closed or the task is cancelled.
    public func makeAsyncIterator() -> Iterator { Iterator(states: states.makeAsyncIterator(), last: first) }

    /// The iterator of ``NetworkChanges``, which waits for the next change of the network.
    public struct Iterator: AsyncIteratorProtocol {
        var states: AsyncStream<NetworkState>.Iterator
        var last: NetworkState

        /// Waits for the next change of the network and returns the new state. Returns `nil` if the ``Downloader`` is
        /// closed or the task is cancelled.
        public mutating func next() async -> NetworkState? {
            while let state = await states.next() {
                guard state != last else { continue }
                last = state
                return state
            }
            return nil
        }
    }
}
