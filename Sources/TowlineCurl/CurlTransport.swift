import Synchronization
package import TowlineCore
package import TowlineEngine

/// The implementation of `Transport`, which sends HTTP requests (attempts), over libcurl's multi interface (7.88.1 or
/// newer).
///
/// A few engine threads wait for sockets (epoll) and run libcurl. The thread of an attempt calls its callbacks with
/// libcurl's own buffer: nothing is copied, allocated or locked in between. Attempts of one thread reuse each other's
/// idle connections. By default, there is one thread. With several threads, the first one runs the segments of long
/// files, and only attempts that may receive a small file (`mayBeSmall`) are distributed. The thread that receives a
/// small file also runs the tasks that follow, including the next request (`LocalRunQueue`).
///
/// Behavior beyond the contract of `Transport`:
/// - The transport delivers a body in pieces of up to 16 KiB (libcurl's `CURL_MAX_WRITE_SIZE`). After a pause it
///   delivers the same bytes again first, perhaps with more behind them.
/// - The rest of a long body that arrives fast, over HTTP/1.x without TLS, is delivered through a pipe if the receiver
///   accepts pipes (`SplicePolicy`): up to 224 KiB at once, which a SIGKILL may cost. The connection is then closed.
/// - `proceed` also ends the delay of `.pauseFor` early.
/// - A response that is complete without a byte of body after `.pause` ends only after `proceed`.
/// - Field values that are not UTF-8 keep their bytes: see `FieldText`.
/// - A request that must not be sent (a control character in a field, a cookie or netrc file that cannot be read) ends
///   as `failed(.local)`, a response 407 as `failed(.proxyUnauthorized)`.
package final class CurlTransport: Transport {
    /// An engine thread, which runs libcurl, and its highest number of concurrent attempts.
    private struct Lane {
        let thread: EngineThread
        /// The highest number of concurrent attempts on the thread when an attempt for a small file started. The thread
        /// has about as many connections.
        var most = 0
    }

    /// The engine threads, which run libcurl, and whether the transport was shut down.
    private struct Lanes {
        var lanes: [Lane] = []
        var isShutDown = false
    }

    private let state = Mutex(Lanes())
    private let mostThreads: Int
    private let context: EngineContext

    /// The number of running attempts on the least loaded thread at which the transport starts another thread for small
    /// files. Also the maximum lead in attempts of a thread that is preferred for its idle connections.
    private static let enough = 4

    /// Starts the first engine thread. The thread immediately initializes libcurl and the TLS library, which takes a
    /// millisecond or two, so that the first attempt does not wait for it.
    ///
    /// - Parameters:
    ///   - engineThreads: the maximum number of threads, at least 1. A second thread, started once there is enough
    ///     work, pays off if the work of one thread uses a whole core.
    ///   - bufferSize: the number of bytes that an attempt reads at once, 16 KiB … 512 KiB. With over 4 attempts on a
    ///     thread new ones get 127 KiB at most, with over 32 64 KiB, with over 256 16 KiB. A SIGKILL costs these bytes
    ///     and up to 32 KiB not yet recorded in the journal: together 256 KiB at most. The default is 1 KiB less than
    ///     eleven pieces of 16 KiB, so that the length of the last piece of a read shows that it is the last one.
    ///
    /// If the system refuses the first thread, each attempt tries to start it again, and ends with
    /// `failed(.threadRefused)` if the system still refuses.
    package init(engineThreads: Int = 1, bufferSize: Int = BufferPolicy.usual) {
        context = EngineContext(bufferSize: min(max(bufferSize, 16 * 1024), 512 * 1024))
        mostThreads = max(engineThreads, 1)
        state.withLock { startThread(&$0) }
    }

    deinit {
        for thread in threads { thread.abandon() }
    }

    private var threads: [EngineThread] { state.withLock { $0.lanes.map(\.thread) } }

    private func startThread(_ state: inout Lanes) {
        let thread = EngineThread(name: "tow-curl-\(state.lanes.count)", context: context)
        if let thread { state.lanes.append(Lane(thread: thread)) }
    }

    /// Sends the request of an attempt, and passes the response to `receiver` on an engine thread. After `shutdown`,
    /// the attempt ends as cancelled within this call; without any thread, it ends as `failed(.threadRefused)`.
    package func start(_ request: AttemptRequest, receiver: any AttemptReceiver) {
        // The command is posted under the lock, so that the next caller counts this attempt.
        let isTaken = state.withLock { state in thread(for: request, &state)?.post(.start(request, receiver)) }
        switch isTaken {
        case true?: break
        case false?: receiver.ended(.cancelled)
        case nil:
            let reason =
                "cannot start a thread for the download, because a limit on processes, memory or open files is reached"
                + " (ulimit -u, -v, -n, or pids.max of a container)"
            receiver.ended(.failed(TransportFailure(.threadRefused, reason)))
        }
    }

    /// Returns the engine thread for an attempt; `nil` if the system refuses one. Prefers the least loaded thread that
    /// has idle connections, unless all such threads have much more work than another: the number of connections then
    /// stays within the number of concurrent attempts. Among equal threads, prefers the calling one, which has just
    /// received the small file whose end leads to this request.
    private func thread(for request: AttemptRequest, _ state: inout Lanes) -> EngineThread? {
        if state.lanes.isEmpty, !state.isShutDown { startThread(&state) }
        guard mostThreads > 1, request.mayBeSmall else { return state.lanes.first?.thread }
        guard var least = state.lanes.lazy.map(\.thread.runningCount).min() else { return nil }
        if least >= Self.enough, state.lanes.count < mostThreads, !state.isShutDown {
            startThread(&state)
            least = 0
        }
        let order = state.lanes.map { lane in
            let count = lane.thread.runningCount
            let isConnected = count < lane.most && count <= least + Self.enough
            return (isConnected ? 0 : 1, count, lane.thread.isCurrent ? 0 : 1)
        }
        guard let index = order.indices.min(by: { order[$0] < order[$1] }) else { return nil }
        state.lanes[index].most = max(state.lanes[index].most, order[index].1 + 1)
        return state.lanes[index].thread
    }

    /// Ends an attempt soon, with `.cancelled` unless it has ended. Every thread gets the command, because only the
    /// attempt's own thread knows the attempt.
    package func cancel(_ id: AttemptID) {
        for thread in threads { _ = thread.post(.cancel(id)) }
    }

    /// Resumes an attempt that its receiver paused. If the attempt is not paused, makes the receiver process the bytes
    /// that it has collected (`AttemptReceiver.flush`). Ignores unknown identifiers.
    package func proceed(_ id: AttemptID) {
        for thread in threads { _ = thread.post(.proceed(id)) }
    }

    /// Cancels all attempts, joins the threads and closes every descriptor. Concurrent calls also return only
    /// afterwards.
    package func shutdown() async {
        let threads = state.withLock { state in
            state.isShutDown = true
            return state.lanes.map(\.thread)
        }
        for thread in threads { thread.requestStop() }
        for thread in threads { await thread.stop() }
    }
}
