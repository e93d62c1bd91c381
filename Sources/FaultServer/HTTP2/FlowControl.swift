import Synchronization

/// The windows that the client grants an HTTP/2 connection and its streams (RFC 9113 §5.2).
final class FlowControl: Sendable {
    /// The remaining windows in bytes, and the callers that wait for a larger one.
    private struct Windows {
        var connection = 65_535
        var initial = 65_535
        var streams: [UInt32: Int] = [:]
        var isClosed = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// An error: the client reset the stream, or the connection ended.
    struct StreamGone: Error {}

    private let state = Mutex(Windows())

    func open(_ stream: UInt32) { state.withLock { $0.streams[stream] = $0.initial } }

    func close(_ stream: UInt32) {
        wake { $0.streams[stream] = nil }
    }

    func closeAll() {
        wake { $0.isClosed = true }
    }

    /// Applies a WINDOW_UPDATE; stream 0 is the connection.
    func grant(_ count: Int, stream: UInt32) {
        wake { state in
            if stream == 0 { state.connection += count } else { state.streams[stream]? += count }
        }
    }

    /// Applies SETTINGS_INITIAL_WINDOW_SIZE: changes the windows of open streams by the difference (RFC 9113 §6.9.2).
    func setInitial(_ size: Int) {
        wake { state in
            let difference = size - state.initial
            state.initial = size
            for stream in state.streams.keys { state.streams[stream]? += difference }
        }
    }

    /// Takes up to `count` bytes from both windows. Waits while one of the windows is empty.
    func take(_ count: Int, stream: UInt32) async throws -> Int {
        while true {
            let taken: Int? = try state.withLock { state in
                guard !state.isClosed, let window = state.streams[stream] else { throw StreamGone() }
                let taken = min(count, window, state.connection)
                guard taken > 0 else { return nil }
                state.streams[stream] = window - taken
                state.connection -= taken
                return taken
            }
            if let taken { return taken }
            await withCheckedContinuation { continuation in
                let passes = state.withLock { state in
                    let window = state.isClosed ? nil : state.streams[stream]
                    if min(window ?? 1, window == nil ? 1 : state.connection) > 0 { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if passes { continuation.resume() }
            }
        }
    }

    private func wake(_ change: (inout Windows) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        waiters.forEach { $0.resume() }
    }
}
