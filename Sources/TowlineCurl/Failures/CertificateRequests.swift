import CCurl
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// The attempts whose server asked for a client certificate and received none. Many servers then only close the
/// connection, or send an alert that is lost with it, so no result code of libcurl reports the cause. `FailureTable`
/// looks up the cause here.
enum CertificateRequests {
    /// The numbers (`AttemptID.value`) of attempts whose server asked for a client certificate and received none, the
    /// oldest first; at most the latest `most`.
    private static let attempts = Mutex<[UInt64]>([])
    private static let most = 256
    /// The index under which the number of an attempt is stored in OpenSSL's contexts (`SSL_CTX`). The data is a
    /// number, not a pointer: a connection may outlive its attempt.
    private static let index = ccurl_new_context_index()

    /// Makes OpenSSL report requests for a client certificate in all TLS handshakes of an easy handle.
    static func watch(_ handle: EasyHandle) { _ = ccurl_set_tls_callback(handle.pointer, prepare) }

    /// The callback that prepares an OpenSSL context (`SSL_CTX`) of an easy handle (`CURLOPT_SSL_CTX_FUNCTION(3)`). A
    /// handle without an attempt needs no preparation.
    private static let prepare:
        @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> CURLcode = {
            handle, context, _ in
            if let handle, let context, let attempt = EasyHandle.attempt(of: handle) {
                let number = UInt(truncatingIfNeeded: attempt.id.value)
                ccurl_watch_certificate_requests(OpaquePointer(context), index, number, requested)
            }
            return CURLE_OK
        }

    /// Returns whether the server of an attempt asked for a client certificate and received none.
    static func contains(_ id: AttemptID) -> Bool { attempts.withLock { $0.contains(id.value) } }

    /// The callback that records the attempt of a connection. OpenSSL calls it when a server asks for a client
    /// certificate and none is set (`SSL_CTX_set_client_cert_cb(3)`). The handshake then continues without a
    /// certificate.
    private static let requested:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<OpaquePointer?>?
        ) -> Int32 = { connection, _, _ in
            if let connection {
                let number = UInt64(ccurl_context_number(connection, index))
                attempts.withLock { attempts in
                    if attempts.count >= most { attempts.removeFirst() }
                    attempts.append(number)
                }
            }
            return 0
        }
}
