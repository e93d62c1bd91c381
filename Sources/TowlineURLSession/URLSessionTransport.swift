import Synchronization
package import TowlineCore
public import TowlineEngine

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// The implementation of `Transport`, which sends HTTP requests (attempts), over the data tasks of `URLSession`, for
/// apps that must use the networking of the system: its proxies, VPN, certificates and App Transport Security.
///
/// Differences from the contract of `Transport`, which `docs/porting.md` explains:
/// - An attempt that asks for an option that `URLSession` does not have ends with `failed(.unsupported)`, and no
///   request is sent: see `UnsupportedOptions`.
/// - The system may add fields such as `User-Agent`, `Accept` and `Accept-Language`, and sends the fields in an order
///   of its own. Fields of a response have no order, and fields with equal names are one field.
/// - Cookies are neither stored nor sent. Credentials are sent as Basic, at once.
/// - Connections are shared as the system decides. `AttemptRequest.sharing`, `mayBeSmall` and
///   `AttemptReceiver.rateLimit` are ignored.
/// - `ConnectionOptions.headTimeout` includes the time to connect, and `connectTimeout` is ignored.
/// - The limits of a response head are checked when the head is complete.
/// - The version in a response head is always HTTP/1.1.
package final class URLSessionTransport: Transport {
    private struct State {
        var attempts: [AttemptID: DataTaskAttempt] = [:]
        /// The sessions, created at first use; the key is `true` for the session that bypasses the system's proxies.
        var sessions: [Bool: URLSession] = [:]
        var isShutDown = false
        /// The callers of `shutdown` that wait for the last attempt.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let configuration: @Sendable () -> URLSessionConfiguration
    private let delegate = SessionDelegate()

    /// The maximum number of connections to a host. The engine has limits of its own.
    private static let hostConnectionLimit = 128

    /// Creates a transport.
    ///
    /// - Parameter configuration: returns the configuration of the sessions. The transport turns off the cache, cookies
    ///   and stored credentials of the configuration, and raises its connection limit. A configuration of a background
    ///   session is not supported, because such sessions have no data tasks.
    package init(configuration: @escaping @Sendable () -> URLSessionConfiguration = { .ephemeral }) {
        self.configuration = configuration
    }

    deinit {
        // A session keeps its delegate until it is invalidated.
        for session in state.withLock({ $0.sessions.values }) { session.finishTasksAndInvalidate() }
    }

    /// Sends the request of an attempt, and passes the response to `receiver` on a dispatch queue of the attempt. After
    /// `shutdown`, the attempt ends as cancelled within this call.
    package func start(_ request: AttemptRequest, receiver: any AttemptReceiver) {
        // The transport lives until its attempts have ended: an invalidated session must not create a task.
        let attempt = DataTaskAttempt(request, receiver: receiver) { self.remove(request.id) }
        let session = state.withLock { state -> URLSession? in
            guard !state.isShutDown else { return nil }
            state.attempts[request.id] = attempt
            return self.session(bypassesProxies: request.connection.proxy == "", &state)
        }
        guard let session else { return receiver.ended(.cancelled) }
        attempt.begin(in: session, delegate)
    }

    /// Ends an attempt soon, with `.cancelled` unless it has ended.
    package func cancel(_ id: AttemptID) { attempt(id)?.cancel() }

    /// Resumes an attempt that its receiver paused. If the attempt is not paused, makes the receiver process the bytes
    /// that it gathered (`AttemptReceiver.flush`).
    package func proceed(_ id: AttemptID) { attempt(id)?.proceed() }

    /// Cancels all attempts, and invalidates the sessions after the last attempt has ended.
    package func shutdown() async {
        let attempts = state.withLock { state in
            state.isShutDown = true
            return Array(state.attempts.values)
        }
        for attempt in attempts { attempt.cancel() }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.attempts.isEmpty { state.waiters.append(continuation) }
                return state.attempts.isEmpty
            }
            if isOver { continuation.resume() }
        }
        let sessions = state.withLock { state in
            defer { state.sessions = [:] }
            return Array(state.sessions.values)
        }
        for session in sessions { session.finishTasksAndInvalidate() }
    }

    private func attempt(_ id: AttemptID) -> DataTaskAttempt? { state.withLock { $0.attempts[id] } }

    /// Forgets an attempt that has ended.
    private func remove(_ id: AttemptID) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.attempts[id] = nil
            guard state.attempts.isEmpty else { return [] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func session(bypassesProxies: Bool, _ state: inout State) -> URLSession {
        if let session = state.sessions[bypassesProxies] { return session }
        let configuration = configuration()
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.httpCookieAcceptPolicy = .never
        configuration.urlCredentialStorage = nil
        configuration.httpMaximumConnectionsPerHost = Self.hostConnectionLimit
        if bypassesProxies { configuration.connectionProxyDictionary = [:] }
        #if canImport(FoundationNetworking)
            let queue = DelegateQueue()
        #else
            let queue: OperationQueue? = nil
        #endif
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
        state.sessions[bypassesProxies] = session
        return session
    }
}

extension DownloadTransport {
    /// The networking of the system, for apps that must use its proxies, VPN, certificates and App Transport Security.
    ///
    /// Options that `URLSession` does not have, such as `DownloadRequest.publicAddressesOnly`, make a download fail
    /// with `unusableOption`. On Linux, do not use this transport for servers that are not trusted: a response that is
    /// cut in its head ends the process.
    ///
    /// - Parameter configuration: returns the configuration of the sessions. Its cache, cookies and stored credentials
    ///   are turned off. A configuration of a background session is not supported.
    public static func urlSession(
        configuration: @escaping @Sendable () -> URLSessionConfiguration = { .ephemeral }
    ) -> DownloadTransport {
        DownloadTransport { URLSessionTransport(configuration: configuration) }
    }
}
