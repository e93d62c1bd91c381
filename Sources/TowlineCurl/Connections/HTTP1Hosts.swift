import CCurl
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// The servers (scheme, host and port) that Towline uses HTTP/1.1 for because HTTP/2 failed there (docs/http-rules.md).
/// Shared by all threads of a `CurlTransport`.
final class HTTP1Hosts: Sendable {
    /// The record of one server (scheme, host and port) where HTTP/2 failed, and the time at which the record expires.
    private struct Entry {
        var end: MonotonicTime
        /// `true` if the server has sent a response over HTTP/1.1, which proves that it speaks HTTP/1.1.
        var works = false
        /// `true` if the server does not speak HTTP/1.1: Towline then uses HTTP/2 even after failures.
        var isRefused = false
    }

    /// The duration of the use of HTTP/1.1 for a server after a failure of HTTP/2. Afterwards Towline tries HTTP/2
    /// again, because a server may be repaired.
    private static let life = Duration.seconds(600)

    private let entries = Mutex<[HTTPURL.Origin: Entry]>([:])
    /// `true` while no server is recorded, which is the usual case: requests then take no lock.
    private let isEmpty = Atomic<Bool>(true)

    /// Returns whether requests to a server must use HTTP/1.1, because HTTP/2 failed there within the last ten minutes.
    func contains(_ origin: HTTPURL.Origin) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        return entries.withLock { entries in
            guard let entry = entries[origin], !entry.isRefused else { return false }
            return entry.end > .now
        }
    }

    /// Makes later requests to a server use HTTP/1.1, for the next ten minutes.
    ///
    /// - Returns: `false` if the server already has an entry, also if it does not speak HTTP/1.1.
    func add(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            let now = MonotonicTime.now
            if let entry = entries[origin], entry.end > now { return false }
            entries[origin] = Entry(end: now.advanced(by: Self.life))
            isEmpty.store(false, ordering: .releasing)
            return true
        }
    }

    /// Records the result of an attempt over HTTP/1.1: whether a response head arrived, and the failure, if any. If a
    /// server has never sent a response over HTTP/1.1 and its failure shows that it does not speak it, later requests
    /// use HTTP/2 again.
    func note(_ origin: HTTPURL.Origin, hasResponded: Bool, failure: TransportFailure.Kind?) {
        guard !isEmpty.load(ordering: .acquiring) else { return }
        entries.withLock { entries in
            guard var entry = entries[origin], !entry.works else { return }
            if hasResponded { entry.works = true }
            if !hasResponded, let failure, [.tlsFailed, .malformed, .closedBeforeHead].contains(failure) {
                entry.isRefused = true
            }
            entries[origin] = entry
        }
    }
}

extension ConnectionOptions {
    /// Returns the options, limited to HTTP/1.1 if HTTP/2 failed at the server (`hosts`), or if `ignoresLength` is set.
    func withProtocol(for origin: HTTPURL.Origin, besides hosts: HTTP1Hosts) -> ConnectionOptions {
        guard httpProtocol == .automatic, ignoresLength || origin.scheme == .https && hosts.contains(origin) else {
            return self
        }
        var options = self
        options.httpProtocol = .http1
        return options
    }
}

/// The functions of the event loop that make later requests to a server use HTTP/1.1 after a failure of HTTP/2.
extension AttemptLoop {
    /// Returns the end of an attempt, changed to `http2Failed` if HTTP/2 caused the failure; `code` is libcurl's
    /// result. Later requests to the server then use HTTP/1.1, as after a response that HTTP/2 does not prove to be
    /// complete.
    func withFallback(_ end: AttemptEnd, of attempt: Attempt, _ code: CURLcode) -> AttemptEnd {
        guard attempt.connection.http2 != .unused else {
            if attempt.pool.options.httpProtocol == .http1 {
                var failure: TransportFailure.Kind?
                if case .failed(let reason) = end { failure = reason.kind }
                context.http1Hosts.note(attempt.origin, hasResponded: attempt.phase == .body, failure: failure)
            }
            return end
        }
        switch end {
        case .complete(.stream) where attempt.body?.hasSucceeded == true: _ = context.http1Hosts.add(attempt.origin)
        case .failed(let failure)
        where failure.kind == .streamRefused || FailureTable.isHTTP2Error(attempt, code):
            guard attempt.connection.hasFallenBack || context.http1Hosts.add(attempt.origin) else { break }
            return .failed(TransportFailure(.http2Failed, failure.message))
        default: break
        }
        return end
    }

    /// Makes the next requests to the server use HTTP/1.1 once the server has ended the HTTP/2 connection with an error
    /// (GOAWAY). Does not wait for the rest of the connection's responses, which may still arrive.
    func fallBackIfBroken(_ attempt: Attempt) {
        guard attempt.connection.http2 == .broken, !attempt.connection.hasFallenBack else { return }
        attempt.connection.hasFallenBack = context.http1Hosts.add(attempt.origin)
    }
}

/// The function that recognizes failures of requests that HTTP/2 itself caused, not the network.
extension FailureTable {
    /// Returns whether an attempt over HTTP/2 failed because of HTTP/2, not because of the network.
    ///
    /// Returns `false` on a connection that attempts share: the cause may be another stream or the graceful shutdown of
    /// the connection (GOAWAY). The caller then requests the file over its own connection, and that attempt decides.
    static func isHTTP2Error(_ attempt: Attempt, _ code: CURLcode) -> Bool {
        guard attempt.pool.sharing == .none else { return false }
        switch code {
        // CURLE_PARTIAL_FILE: a reset without an error, or the end of the connection, before the end of the stream.
        case CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_PARTIAL_FILE: return true
        // If nghttp2 refuses a frame, libcurl 7.88 closes the connection and reports an empty reply.
        case CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY: return attempt.phase == .requested
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
            return attempt.connection.http2 == .broken || attempt.handle.errorDetail?.contains("nghttp2") == true
        default: return false
        }
    }
}
