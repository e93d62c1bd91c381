import CCurl
import Glibc
import Synchronization

/// The system's certificate authorities, shared by all connections of the process that use OpenSSL.
///
/// If libcurl also has a directory, as on Debian, it reads the file of about 140 authorities for each connection
/// (lib/vtls/openssl.c, `cache_criteria_met`): 20 to 50 ms, and 700 KiB for the life of the connection. In the
/// directory, each file is named after its authority, so OpenSSL finds the needed one quickly (`openssl-rehash(1)`).
/// The directory is therefore searched first. If its authorities do not verify a chain, the file is read once, and from
/// then on both are searched as libcurl does it. The set of trusted authorities is the same as without this type.
enum SystemAuthorities {
    /// The two certificate stores of OpenSSL that hold authorities. Each connection holds a reference to its full
    /// store.
    private struct Stores: @unchecked Sendable {
        /// The store with the authorities of the directory only, which is searched first.
        let quick: OpaquePointer
        /// The store with the authorities of the file, then of the directory; empty until `quick` does not verify a
        /// chain.
        let full: OpaquePointer
        let stamp: Stamp
        let madeAt: MonotonicTime
        var isComplete = false
    }

    /// The identity and last change of the file and the directory of authorities. A different stamp means new stores.
    private struct Stamp: Equatable {
        private let numbers: [Int]

        init(_ places: Places) {
            numbers = [places.file, places.directory].flatMap { path in
                var status = stat()
                guard stat(path, &status) == 0 else { return [0] }
                return [Int(status.st_ino), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
            }
        }
    }

    typealias Places = (file: String, directory: String)

    private static let current = Mutex<Stores?>(nil)

    /// `true` if the file of trusted certificates could not be read when it was last needed.
    private static let isUnreadable = Atomic<Bool>(false)

    /// The path of the file of trusted certificates, if it could not be read when it was last needed; otherwise `nil`.
    static var unreadableFile: String? { isUnreadable.load(ordering: .relaxed) ? places?.file : nil }

    /// The lifetime of the stores, although the stamp detects most changes: the target of a link in the directory can
    /// change without a new stamp.
    private static let life = Duration.seconds(600)

    /// The paths of the file and the directory of authorities: from the environment (`NamedAuthorities`), or else
    /// libcurl's built-in paths. `nil` if one of them is unknown, or with a TLS library other than OpenSSL: libcurl
    /// then loads and caches authorities.
    static let places: Places? = {
        guard let info = ccurl_openssl_authorities(),
            let file = NamedAuthorities.file?.path ?? info.pointee.cainfo.map(String.init(cString:)),
            let directory = NamedAuthorities.directory?.path ?? info.pointee.capath.map(String.init(cString:))
        else { return nil }
        return (file, directory)
    }()

    /// Makes the connections of an `SSL_CTX`, which libcurl has prepared, trust the system's certificate authorities.
    ///
    /// - Returns: `false` if memory ran out.
    static func supply(_ context: OpaquePointer) -> Bool {
        guard let places else { return false }
        let stamp = Stamp(places)
        return current.withLock { current in
            if let known = current, known.stamp != stamp || known.madeAt.advanced(by: life) <= .now {
                X509_STORE_free(known.quick)
                X509_STORE_free(known.full)
                current = nil
            }
            current = current ?? make(like: SSL_CTX_get_cert_store(context), places, stamp)
            guard let stores = current else { return false }
            SSL_CTX_set1_cert_store(context, stores.full)
            SSL_CTX_set_cert_verify_callback(context, verify, nil)
            return true
        }
    }

    /// Creates the stores with the verification flags of the store `other`, which libcurl prepared, for example trust
    /// in an intermediate certificate. Returns `nil` if memory ran out.
    private static func make(like other: OpaquePointer?, _ places: Places, _ stamp: Stamp) -> Stores? {
        let flags = X509_VERIFY_PARAM_get_flags(X509_STORE_get0_param(other))
        let (quick, full) = (X509_STORE_new(), X509_STORE_new())
        if let quick, let full, X509_STORE_set_flags(quick, flags) == 1, X509_STORE_set_flags(full, flags) == 1,
            X509_STORE_load_locations(quick, nil, places.directory) == 1
        {
            return Stores(quick: quick, full: full, stamp: stamp, madeAt: .now)
        }
        X509_STORE_free(quick)
        X509_STORE_free(full)
        return nil
    }

    // MARK: Verifying

    /// The callback that verifies the certificate chain of a server or proxy. OpenSSL calls it
    /// (`SSL_CTX_set_cert_verify_callback(3)`); 1 means that the chain is trusted.
    private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { question, _ in
        guard let question else { return 0 }
        guard let store = X509_STORE_CTX_get0_store(question) else {
            X509_STORE_CTX_set_error(question, X509_V_ERR_STORE_LOOKUP)
            return 0
        }
        // The connection holds the full store; the quick one needs a reference for the duration of this call.
        let quick = current.withLock { stores -> OpaquePointer? in
            guard let known = stores, known.full == store, !known.isComplete else { return nil }
            X509_STORE_up_ref(known.quick)
            return known.quick
        }
        if let quick {
            defer { X509_STORE_free(quick) }
            let isTrusted = isTrusted(question, by: quick)
            // OpenSSL and libcurl classify failures by the errors in the queue.
            ERR_clear_error()
            if isTrusted { return 1 }
        }
        guard complete(store) else {
            // Reports a failure to read the file, not a bad certificate, so that the request is retried.
            X509_STORE_CTX_set_error(question, X509_V_ERR_STORE_LOOKUP)
            return 0
        }
        return X509_verify_cert(question)
    }

    /// Returns whether the authorities in the store verify the certificate chain of `question`. If so, copies the
    /// result to `question`, which is not verified itself, because OpenSSL can verify it only once.
    private static func isTrusted(_ question: OpaquePointer, by store: OpaquePointer) -> Bool {
        guard let trial = X509_STORE_CTX_new() else { return false }
        defer { X509_STORE_CTX_free(trial) }
        let (certificate, others) = (X509_STORE_CTX_get0_cert(question), X509_STORE_CTX_get0_untrusted(question))
        guard X509_STORE_CTX_init(trial, store, certificate, others) == 1,
            X509_VERIFY_PARAM_set1(X509_STORE_CTX_get0_param(trial), X509_STORE_CTX_get0_param(question)) == 1,
            X509_verify_cert(trial) == 1, let chain = X509_STORE_CTX_get1_chain(trial)
        else { return false }
        X509_STORE_CTX_set0_verified_chain(question, chain)
        X509_STORE_CTX_set_error(question, X509_V_OK)
        return true
    }

    /// Loads the authorities of the file and the directory into a full store, once. Other threads that need the store
    /// wait.
    private static func complete(_ store: OpaquePointer) -> Bool {
        guard let places else { return false }
        return current.withLock { current in
            let isCurrent = current?.full == store
            if isCurrent, current?.isComplete == true { return true }
            let isRead = X509_STORE_load_locations(store, places.file, places.directory) == 1
            isUnreadable.store(!isRead, ordering: .relaxed)
            guard isRead else { return false }
            if isCurrent { current?.isComplete = true }
            return true
        }
    }
}
