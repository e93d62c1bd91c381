import CCurl
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// The attempts whose server asked for a client certificate and received none. Many servers then only close the
/// connection, or send an alert that is lost with it, so no result code of libcurl reports the cause.
enum CertificateRequests {
    /// The numbers of the latest attempts, at most `most`.
    private static let attempts = Mutex<[UInt64]>([])
    private static let most = 256
    /// The index of Towline's data in OpenSSL's contexts. The data is a number, not a pointer: a connection may outlive
    /// its attempt.
    private static let index = ccurl_new_context_index()

    /// Watches the handshakes of an `SSL_CTX` that libcurl has prepared for the attempt of a handle.
    static func watch(_ context: OpaquePointer, of handle: UnsafeMutableRawPointer) {
        guard let attempt = EasyHandle.attempt(of: handle) else { return }
        ccurl_watch_certificate_requests(context, index, UInt(truncatingIfNeeded: attempt.id.value), requested)
    }

    /// Returns whether the server of an attempt asked for a client certificate.
    static func contains(_ id: AttemptID) -> Bool { attempts.withLock { $0.contains(id.value) } }

    /// Records the attempt. OpenSSL calls it if no certificate is set (`SSL_CTX_set_client_cert_cb(3)`).
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
