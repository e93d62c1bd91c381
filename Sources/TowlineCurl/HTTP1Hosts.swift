import CCurl
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// The hosts that are asked over HTTP/1.1 because HTTP/2 failed there (DESIGN.md §5). Shared by the threads of a
/// transport.
final class HTTP1Hosts: Sendable {
    private struct Entry {
        var end: MonotonicTime
        /// A response came over HTTP/1.1.
        var works = false
        /// The host does not speak HTTP/1.1: HTTP/2 is used whatever happens.
        var isRefused = false
    }

    /// A server may be repaired: after this time HTTP/2 is tried again.
    private static let life = Duration.seconds(600)

    private let entries = Mutex<[HTTPURL.Origin: Entry]>([:])
    /// No host is in it, as nearly always: no lock is taken for each request.
    private let isEmpty = Atomic<Bool>(true)

    /// Returns whether a host is asked over HTTP/1.1.
    func contains(_ origin: HTTPURL.Origin) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        return entries.withLock { entries in
            guard let entry = entries[origin], !entry.isRefused else { return false }
            return entry.end > .now
        }
    }

    /// Asks a host over HTTP/1.1 from now on.
    ///
    /// - Returns: `false` if that was known, or the host does not speak HTTP/1.1.
    func add(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            let now = MonotonicTime.now
            if let entry = entries[origin], entry.end > now { return false }
            entries[origin] = Entry(end: now.advanced(by: Self.life))
            isEmpty.store(false, ordering: .releasing)
            return true
        }
    }

    /// Notes the result of an attempt over HTTP/1.1. A host that has never sent a response that way is asked over
    /// HTTP/2 again.
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
    /// The options with HTTP/1.1 for a host where HTTP/2 failed.
    func withProtocol(for origin: HTTPURL.Origin, besides hosts: HTTP1Hosts) -> ConnectionOptions {
        guard httpProtocol == .automatic, ignoresLength || origin.scheme == .https && hosts.contains(origin) else {
            return self
        }
        var options = self
        options.httpProtocol = .http1
        return options
    }
}

extension AttemptLoop {
    /// Falls back to HTTP/1.1 after an error of HTTP/2, and after a response that HTTP/2 does not prove to be complete.
    func withFallback(_ end: AttemptEnd, of attempt: Attempt, _ code: CURLcode) -> AttemptEnd {
        guard attempt.speaksHTTP2 else {
            if attempt.pool.options.httpProtocol == .http1 {
                var failure: TransportFailure.Kind?
                if case .failed(let reason) = end { failure = reason.kind }
                http1Hosts.note(attempt.origin, hasResponded: attempt.phase == .body, failure: failure)
            }
            return end
        }
        switch end {
        case .complete(.stream) where attempt.hasSucceeded: _ = http1Hosts.add(attempt.origin)
        case .failed(let failure)
        where failure.kind == .streamRefused || FailureTable.isHTTP2Error(attempt, code):
            guard attempt.hasFallenBack || http1Hosts.add(attempt.origin) else { break }
            return .failed(TransportFailure(.http2Failed, failure.message))
        default: break
        }
        return end
    }

    /// Uses HTTP/1.1 for the next attempts as soon as a connection has ended with an error, although the rest of its
    /// responses may still come.
    func fallBackIfBroken(_ attempt: Attempt) {
        guard attempt.hasBrokenConnection, !attempt.hasFallenBack else { return }
        attempt.hasFallenBack = http1Hosts.add(attempt.origin)
    }
}

extension FailureTable {
    /// Returns whether an attempt over HTTP/2 failed because of HTTP/2, not because of the network.
    ///
    /// On a shared connection it may be the fault of another stream, or the server's orderly end of the connection
    /// (GOAWAY): the file is then requested over its own connection, and this is decided there.
    static func isHTTP2Error(_ attempt: Attempt, _ code: CURLcode) -> Bool {
        guard attempt.pool.sharing == .none else { return false }
        switch code {
        // The last one: a reset without an error, or the end of the connection, before the end of the stream.
        case CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_PARTIAL_FILE: return true
        // After a frame that nghttp2 refuses, libcurl 7.88 closes the connection and calls that an empty reply.
        case CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY: return attempt.phase == .requested
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
            return attempt.hasBrokenConnection || attempt.handle.errorDetail?.contains("nghttp2") == true
        default: return false
        }
    }
}
