import CCurl
import Synchronization

/// The system's certificate authorities, for all connections of the process by OpenSSL.
///
/// libcurl reads its file of them, some 140, for each connection that also has a directory to look in (Debian's does; lib/vtls/openssl.c,
/// `cache_criteria_met`): 20 to 50 ms, and 700 KiB for as long as the connection lives. In the directory the files are named
/// after what they hold, and the one that is wanted is found in a moment (`openssl-rehash(1)`). So the directory is asked first,
/// and the file is read, once, when a chain cannot be completed without. Trusted is whoever is in either of them, as ever.
enum SystemAuthorities {
    private struct State: @unchecked Sendable {
        /// Every connection that uses it holds it, too.
        var store: OpaquePointer?
        var madeAt = MonotonicTime.never
        /// What is in the file is there.
        var isComplete = false
    }

    private static let state = Mutex(State())

    /// Who was added or withdrawn is to be known without a restart of a service.
    private static let life = Duration.seconds(600)

    /// Where they are; `nil` if libcurl does not say so, has one of the two alone, or another TLS library than OpenSSL. Then it
    /// keeps what it has read by itself, or nobody can.
    static let places: (file: String, directory: String)? = {
        guard let info = ccurl_openssl_authorities(), let file = info.pointee.cainfo,
            let directory = info.pointee.capath
        else { return nil }
        return (String(cString: file), String(cString: directory))
    }()

    /// Has the connections of an `SSL_CTX`, which libcurl has prepared, trust them.
    ///
    /// - Returns: `false` if memory ran out.
    static func supply(_ context: OpaquePointer) -> Bool {
        guard let places else { return false }
        return state.withLock { state in
            if state.store == nil || state.madeAt.advanced(by: life) <= .now {
                guard let store = store(like: SSL_CTX_get_cert_store(context), places.directory) else { return false }
                X509_STORE_free(state.store)
                state = State(store: store, madeAt: .now)
            }
            SSL_CTX_set1_cert_store(context, state.store)
            SSL_CTX_set_cert_verify_callback(context, verify, nil)
            return true
        }
    }

    /// A store with those of the directory, and with libcurl's wishes: a certificate in the middle of a chain may be trusted, for
    /// one.
    private static func store(like other: OpaquePointer?, _ directory: String) -> OpaquePointer? {
        guard let store = X509_STORE_new() else { return nil }
        let flags = X509_VERIFY_PARAM_get_flags(X509_STORE_get0_param(other))
        if X509_STORE_set_flags(store, flags) == 1, X509_STORE_load_locations(store, nil, directory) == 1 {
            return store
        }
        X509_STORE_free(store)
        return nil
    }

    /// Verifies a chain, as OpenSSL asks for it (`SSL_CTX_set_cert_verify_callback(3)`).
    private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { verification, _ in
        guard let verification, let store = X509_STORE_CTX_get0_store(verification) else { return 0 }
        let isComplete = state.withLock { $0.isComplete && $0.store == store }
        if !isComplete, !isTrusted(verification, by: store) { complete(store) }
        return X509_verify_cert(verification)
    }

    /// Whether the chain is vouched for by those who are in the store. Asked for it alone: an answer cannot be asked for twice.
    private static func isTrusted(_ verification: OpaquePointer, by store: OpaquePointer) -> Bool {
        guard let trial = X509_STORE_CTX_new() else { return false }
        defer { X509_STORE_CTX_free(trial) }
        return X509_STORE_CTX_init(
            trial, store, X509_STORE_CTX_get0_cert(verification), X509_STORE_CTX_get0_untrusted(verification)) == 1
            && X509_VERIFY_PARAM_set1(
                X509_STORE_CTX_get0_param(trial), X509_STORE_CTX_get0_param(verification)) == 1
            && X509_verify_cert(trial) == 1
    }

    /// Adds those in the file; the others who need them wait for it. What cannot be read vouches for nobody.
    private static func complete(_ store: OpaquePointer) {
        state.withLock { state in
            let isCurrent = state.store == store
            if isCurrent && state.isComplete { return }
            _ = X509_STORE_load_locations(store, places?.file, nil)
            if isCurrent { state.isComplete = true }
        }
    }
}
