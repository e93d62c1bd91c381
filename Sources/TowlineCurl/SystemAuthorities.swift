import CCurl
import Glibc
import Synchronization

/// The system's certificate authorities, for all connections of the process by OpenSSL.
///
/// libcurl reads its file of them, some 140, for each connection where it has a directory to look in, too, as Debian's
/// (lib/vtls/openssl.c, `cache_criteria_met`): 20 to 50 ms, and 700 KiB for as long as the connection lives. In the directory
/// the files are named after what they hold, and the one that is wanted is found in a moment (`openssl-rehash(1)`). So the
/// directory is asked first. Where those in it do not vouch for a chain, the file is read, once, and from then on both are asked as
/// libcurl does it. Trusted is whoever is in either of them, as ever.
enum SystemAuthorities {
    /// What was made of them. Each connection holds its own, too.
    private struct Stores: @unchecked Sendable {
        /// Those in the directory alone.
        let quick: OpaquePointer
        /// Those in the file, then those in the directory; empty until somebody needs it.
        let full: OpaquePointer
        let stamp: Stamp
        let madeAt: MonotonicTime
        var isComplete = false
    }

    /// Which file and which directory it was, and when they changed last.
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

    /// The file could not be read when it was needed last.
    private static let isUnreadable = Atomic<Bool>(false)

    /// The file of trusted certificates, if it could not be read when it was needed last.
    static var unreadableFile: String? { isUnreadable.load(ordering: .relaxed) ? places?.file : nil }

    /// A file behind a link of the directory may change unseen.
    private static let life = Duration.seconds(600)

    /// Where they are: where the environment says (`NamedAuthorities`), else where libcurl was built to look. `nil` if neither says
    /// so of both, or with another TLS library than OpenSSL. Then libcurl keeps what it has read by itself, or nobody can.
    static let places: Places? = {
        guard let info = ccurl_openssl_authorities(),
            let file = NamedAuthorities.file?.path ?? info.pointee.cainfo.map(String.init(cString:)),
            let directory = NamedAuthorities.directory?.path ?? info.pointee.capath.map(String.init(cString:))
        else { return nil }
        return (file, directory)
    }()

    /// Has the connections of an `SSL_CTX`, which libcurl has prepared, trust them.
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

    /// With libcurl's wishes: a certificate in the middle of a chain may be trusted, for one.
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

    /// Verifies a chain, as OpenSSL asks for it (`SSL_CTX_set_cert_verify_callback(3)`).
    private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { question, _ in
        guard let question else { return 0 }
        guard let store = X509_STORE_CTX_get0_store(question) else {
            X509_STORE_CTX_set_error(question, X509_V_ERR_STORE_LOOKUP)
            return 0
        }
        // Whoever asks holds it; the other one is held as long as this lasts.
        let quick = current.withLock { stores -> OpaquePointer? in
            guard let known = stores, known.full == store, !known.isComplete else { return nil }
            X509_STORE_up_ref(known.quick)
            return known.quick
        }
        if let quick {
            defer { X509_STORE_free(quick) }
            let isTrusted = isTrusted(question, by: quick)
            // OpenSSL and libcurl tell failures apart by the errors that they find.
            ERR_clear_error()
            if isTrusted { return 1 }
        }
        guard complete(store) else {
            // The error that stays is that of the reading: not a certificate's, and worth another try.
            X509_STORE_CTX_set_error(question, X509_V_ERR_STORE_LOOKUP)
            return 0
        }
        return X509_verify_cert(question)
    }

    /// Whether those in the store vouch for the chain. If so, the answer to the question is that; it is not asked itself, which is
    /// possible once only.
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

    /// Reads what is to be in a full store, once; others who need it wait for that.
    ///
    /// - Returns: `false` if the file could not be read: the next one tries again.
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
