import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

#if canImport(FoundationNetworking)
    /// The queue on which a session calls its delegate. Makes each call at once, on the work queue of the session.
    ///
    /// An ordinary queue holds the bytes that libcurl reads faster than the delegate is called, without a limit.
    ///
    /// `@unchecked Sendable`: has no variables.
    final class DelegateQueue: OperationQueue, @unchecked Sendable {
        override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
    }
#endif

/// The delegate of the sessions of a transport. Passes the events of a task to its attempt.
///
/// `URLSession` calls the delegate on one thread at a time, in the order of the events.
final class SessionDelegate: NSObject, URLSessionDataDelegate {
    /// The attempts by the session and the identifier of their tasks.
    private let attempts = Mutex<[Key: DataTaskAttempt]>([:])

    private struct Key: Hashable {
        let session: ObjectIdentifier
        let task: Int

        init(_ session: URLSession, _ task: URLSessionTask) {
            (self.session, self.task) = (ObjectIdentifier(session), task.taskIdentifier)
        }
    }

    /// Passes the events of `task` to `attempt` from now on, until the task is complete.
    func add(_ attempt: DataTaskAttempt, for task: URLSessionTask, in session: URLSession) {
        attempts.withLock { $0[Key(session, task)] = attempt }
    }

    private func attempt(_ session: URLSession, _ task: URLSessionTask) -> DataTaskAttempt? {
        attempts.withLock { $0[Key(session, task)] }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { attempt(session, dataTask)?.received(response) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        attempt(session, dataTask)?.received(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let attempt = attempts.withLock { $0.removeValue(forKey: Key(session, task)) }
        attempt?.completed(task.response as? HTTPURLResponse, error)
    }

    /// Follows no redirect: the task delivers the redirect as its response.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            // The challenge follows the complete response, and the default handling of Swift 6.3 never completes the
            // task. The attempt ends and cancels the task.
            attempt(session, task)?.completed(task.response as? HTTPURLResponse, nil)
        #else
            completionHandler(.performDefaultHandling, nil)
        #endif
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completionHandler(nil)
    }
}
