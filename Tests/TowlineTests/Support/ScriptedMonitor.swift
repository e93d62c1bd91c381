import Synchronization
import TowlineCore
import TowlineEngine

/// A network monitor whose state a test sets.
final class ScriptedMonitor: NetworkMonitor {
    private struct Contents {
        var state = NetworkState.available
        var readers: [AsyncStream<NetworkState>.Continuation] = []
    }

    private let contents = Mutex(Contents())

    var state: NetworkState { contents.withLock { $0.state } }

    func set(_ state: NetworkState) {
        let readers = contents.withLock { contents in
            contents.state = state
            return contents.readers
        }
        for reader in readers { reader.yield(state) }
    }

    func changes() -> AsyncStream<NetworkState> {
        let (stream, continuation) = AsyncStream<NetworkState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        contents.withLock { $0.readers.append(continuation) }
        return stream
    }

    func close() async { for reader in contents.withLock({ $0.readers }) { reader.finish() } }
}
