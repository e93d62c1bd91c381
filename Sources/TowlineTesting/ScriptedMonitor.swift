import Synchronization
package import TowlineCore
import TowlineEngine

/// A network monitor whose state a test sets.
package final class ScriptedMonitor: NetworkMonitor {
    private struct Contents {
        var state: NetworkState
        var readers: [AsyncStream<NetworkState>.Continuation] = []
    }

    private let contents: Mutex<Contents>

    /// Creates a monitor of a network in the given state.
    package init(_ state: NetworkState = .available) { contents = Mutex(Contents(state: state)) }

    package var state: NetworkState { contents.withLock { $0.state } }

    /// Changes the state of the network and informs the readers of `changes()`.
    package func set(_ state: NetworkState) {
        let readers = contents.withLock { contents in
            contents.state = state
            return contents.readers
        }
        for reader in readers { reader.yield(state) }
    }

    package func changes() -> AsyncStream<NetworkState> {
        let (stream, continuation) = AsyncStream<NetworkState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        contents.withLock { $0.readers.append(continuation) }
        return stream
    }

    package func close() async { for reader in contents.withLock({ $0.readers }) { reader.finish() } }
}
