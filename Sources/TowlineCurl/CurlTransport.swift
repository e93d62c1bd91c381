import Synchronization
package import TowlineCore
package import TowlineEngine

/// The `Transport` over libcurl's multi interface (7.88.1 or newer).
///
/// A few engine threads wait for sockets (epoll) and run libcurl; the callbacks of an attempt come from the thread
/// that it was given to, with libcurl's own buffer and nothing copied, allocated or locked in between. An attempt goes
/// to the thread on which the fewest run, the first of these if there are several: an even load keeps using the same
/// connections. With one thread, the default, all attempts share what is idle.
///
/// Beyond the port's contract:
/// - A body is handed over in pieces of up to 16 KiB (libcurl's `CURL_MAX_WRITE_SIZE`). After a pause the same bytes
///   come again first, perhaps with more behind them.
/// - `proceed` also ends the delay of `.pauseFor` early.
/// - A response that is complete without a byte of body after `.pause` ends only after `proceed`.
/// - Field values that are not UTF-8 keep their bytes: see `FieldText`.
/// - A request that must not go out (a control character in a field, a file of the options that cannot be read) ends
///   as `failed(.local)`, a response 407 as `failed(.proxyFailed)`.
package final class CurlTransport: Transport {
    private let threads: [EngineThread]

    /// Starts the engine threads, which at once begin with what the first attempt would wait for: libcurl's
    /// initialisation with that of the TLS library, a millisecond or two.
    ///
    /// - Parameters:
    ///   - engineThreads: how many, at least 1; a second one pays off where one core is busy with one thread's work.
    ///   - bufferSize: how many bytes an attempt reads at once, 16 KiB … 512 KiB; with over 4 attempts on a thread
    ///     the new ones get 128 KiB at most, with over 32 64 KiB, with over 256 16 KiB.
    ///
    /// If the system refuses threads or descriptors, every attempt ends with `failed(.local)`.
    package init(engineThreads: Int = 1, bufferSize: Int = 256 * 1024) {
        let size = min(max(bufferSize, 16 * 1024), 512 * 1024)
        threads = (0..<max(engineThreads, 1)).compactMap { EngineThread(name: "tow-curl-\($0)", bufferSize: size) }
    }

    deinit {
        for thread in threads { thread.abandon() }
    }

    /// Sends the request of an attempt. After `shutdown` it ends as cancelled, within this call.
    package func start(_ request: AttemptRequest, receiver: any AttemptReceiver) {
        guard let first = threads.first else {
            return receiver.ended(.failed(TransportFailure(.local, "no engine thread could be started")))
        }
        var chosen = first
        var least = Int.max
        for thread in threads {
            let load = thread.load.load(ordering: .relaxed)
            if load < least { (chosen, least) = (thread, load) }
        }
        if !chosen.post(.start(request, receiver)) { receiver.ended(.cancelled) }
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
        for thread in threads { thread.requestStop() }
        for thread in threads { await thread.stop() }
    }
}
