import Synchronization
package import TowlineCore
package import TowlineEngine

/// The `Transport` over libcurl's multi interface (7.88.1 or newer).
///
/// A few engine threads wait for sockets (epoll) and run libcurl; the callbacks of an attempt come from the thread
/// that it was given to, with libcurl's own buffer and nothing copied, allocated or locked in between. Attempts of one
/// thread use one another's idle connections. With one thread, the default, these are all; where there are more, the segments
/// of long files are the first one's, and only what may be brief is spread: what the small file leads to is done by
/// the thread that it came to, the next request included (`LocalRunQueue`).
///
/// Beyond the port's contract:
/// - A body is handed over in pieces of up to 16 KiB (libcurl's `CURL_MAX_WRITE_SIZE`). After a pause the same bytes
///   come again first, perhaps with more behind them.
/// - The rest of a long body that comes fast, over HTTP/1.x without TLS, comes through a pipe if the receiver takes it so
///   (`SplicePolicy`): up to 224 KiB at once, which a SIGKILL may cost, and its connection ends with it.
/// - `proceed` also ends the delay of `.pauseFor` early.
/// - A response that is complete without a byte of body after `.pause` ends only after `proceed`.
/// - Field values that are not UTF-8 keep their bytes: see `FieldText`.
/// - A request that must not go out (a control character in a field, a file of the options that cannot be read) ends
///   as `failed(.local)`, a response 407 as `failed(.proxyFailed)`.
package final class CurlTransport: Transport {
    private struct Lane {
        let thread: EngineThread
        /// So many attempts ran on it at one time when one that may be brief began: their connections are there.
        var most = 0
    }

    private struct State {
        var lanes: [Lane] = []
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let mostThreads: Int
    private let bufferSize: Int
    private let http1Hosts = HTTP1Hosts()
    private let challengeHosts = ChallengeHosts()

    /// From so many attempts on a thread on the next ones that may be brief have another.
    private static let enough = 4

    /// Starts the first engine thread, which at once begins with what the first attempt would wait for: libcurl's
    /// initialisation with that of the TLS library, a millisecond or two.
    ///
    /// - Parameters:
    ///   - engineThreads: how many at most, at least 1; a second one, started once there is enough for it, pays off where one core
    ///     is busy with one thread's work.
    ///   - bufferSize: how many bytes an attempt reads at once, 16 KiB … 512 KiB; with over 4 attempts on a thread
    ///     the new ones get 127 KiB at most, with over 32 64 KiB, with over 256 16 KiB. A SIGKILL costs so much, besides the
    ///     32 KiB that may not have been marked: together 256 KiB at most, with a KiB less than whole pieces, so that
    ///     the last piece of a reading is told by its length.
    ///
    /// If the system refuses the first thread, each attempt asks for it again, and ends with `failed(.threadRefused)`
    /// if the system still refuses.
    package init(engineThreads: Int = 1, bufferSize: Int = BufferPolicy.usual) {
        self.bufferSize = min(max(bufferSize, 16 * 1024), 512 * 1024)
        mostThreads = max(engineThreads, 1)
        state.withLock { startThread(&$0) }
    }

    deinit {
        for thread in threads { thread.abandon() }
    }

    private var threads: [EngineThread] { state.withLock { $0.lanes.map(\.thread) } }

    private func startThread(_ state: inout State) {
        let name = "tow-curl-\(state.lanes.count)"
        let thread = EngineThread(
            name: name, bufferSize: bufferSize, http1Hosts: http1Hosts, challengeHosts: challengeHosts)
        if let thread { state.lanes.append(Lane(thread: thread)) }
    }

    /// Sends the request of an attempt. After `shutdown` it ends as cancelled, within this call.
    package func start(_ request: AttemptRequest, receiver: any AttemptReceiver) {
        // Handed over under the lock: who comes next counts this one.
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

    /// The least loaded of those that had more at one time, unless all of them have much more to do than another: so all
    /// together have no more connections than attempts that ran at one time. Of equals the calling one: there the file is
    /// that leads to this one.
    private func thread(for request: AttemptRequest, _ state: inout State) -> EngineThread? {
        if state.lanes.isEmpty, !state.isShutDown { startThread(&state) }
        guard mostThreads > 1, request.mayBeBrief else { return state.lanes.first?.thread }
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

    /// Ends an attempt soon. Every thread is asked: which one has the attempt is known to that thread alone.
    package func cancel(_ id: AttemptID) {
        for thread in threads { _ = thread.post(.cancel(id)) }
    }

    /// Goes on after a pause.
    package func proceed(_ id: AttemptID) {
        for thread in threads { _ = thread.post(.proceed(id)) }
    }

    /// Cancels everything, joins the threads, closes every descriptor. Further calls wait for the same end.
    package func shutdown() async {
        let threads = state.withLock { state in
            state.isShutDown = true
            return state.lanes.map(\.thread)
        }
        for thread in threads { thread.requestStop() }
        for thread in threads { await thread.stop() }
    }
}
