import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The limit on the bytes of one attempt that the session delivered and the receiver has not taken.
///
/// On Apple platforms the task is suspended at the limit, and the connection then stops. The tasks of
/// swift-corelibs-foundation cannot be suspended: after `resume` they send their request again. There, a response that
/// can be resumed (206) is cut at the limit, and the engine requests the rest. Any other response is kept in memory.
final class ReceiveWindow: Sendable {
    /// The result of `add`.
    enum Room {
        /// The bytes are to be delivered.
        case open
        /// The bytes are to be delivered, and are the last ones: the window must be closed.
        case full
        /// The bytes come after the end of the attempt.
        case closed
    }

    private struct State {
        var count = 0
        var task: URLSessionDataTask?
        var isSuspended = false
        var isClosed = false
        var canResume = false
    }

    private let state = Mutex(State())

    #if canImport(FoundationNetworking)
        private static let suspends = false
        /// The number of bytes at which the task is cut. A cut costs a request.
        private static let limit = 16 << 20
    #else
        private static let suspends = true
        /// The number of bytes at which the task is suspended. A SIGKILL costs these bytes.
        private static let limit = 128 << 10
    #endif

    /// Returns whether no byte waits for the receiver.
    var isEmpty: Bool { state.withLock { $0.count == 0 } }

    /// Sets the task whose bytes are counted.
    func open(_ task: URLSessionDataTask) { state.withLock { $0.task = task } }

    /// Records that another request can deliver the bytes that follow a cut.
    func allowCut() { state.withLock { $0.canResume = true } }

    /// Counts bytes that the session delivered.
    func add(_ count: Int) -> Room {
        state.withLock { state in
            guard !state.isClosed else { return .closed }
            state.count += count
            guard state.count >= Self.limit, !state.isSuspended else { return .open }
            if Self.suspends {
                state.isSuspended = true
                state.task?.suspend()
            } else if state.canResume {
                state.isClosed = true
                return .full
            }
            return .open
        }
    }

    /// Counts bytes that the receiver took. Resumes a suspended task at half the limit.
    func remove(_ count: Int) {
        state.withLock { state in
            state.count -= count
            guard state.isSuspended, state.count <= Self.limit / 2 else { return }
            state.isSuspended = false
            state.task?.resume()
        }
    }

    /// Ends the task, if it runs. No byte is to be delivered any more.
    func close() {
        let task = state.withLock { state in
            state.isClosed = true
            return state.task.take()
        }
        task?.cancel()
    }
}
