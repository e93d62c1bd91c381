import CCurl

/// The easy handles of a connection pool that run no request, kept for reuse, and the TLS sessions that all handles of
/// the pool share. Confined to one engine thread, a thread that runs libcurl.
final class IdleHandles {
    /// libcurl's share handle, which keeps the TLS sessions for all easy handles of the pool.
    private let share: UnsafeMutableRawPointer
    private var handles: [EasyHandle] = []

    /// The maximum number of handles kept for reuse: creating a handle costs about 20 µs and 5 KiB.
    private static let maximum = 64

    /// Creates an empty collection of easy handles and the store of TLS sessions; `nil` if memory ran out.
    init?() {
        guard let share = curl_share_init() else { return nil }
        self.share = share
        // Further connections to a host resume the TLS session of the first one. One thread uses the share, so no lock
        // is set.
        _ = ccurl_share_data(share, CURL_LOCK_DATA_SSL_SESSION)
    }

    deinit {
        handles.removeAll()
        curl_share_cleanup(share)
    }

    /// Returns a kept handle, or else a new one with the settings of `setUp`; `nil` if memory ran out.
    func take(setUp: (EasyHandle) -> Void) -> EasyHandle? {
        if let handle = handles.popLast() { return handle }
        guard let handle = EasyHandle() else { return nil }
        _ = ccurl_set_pointer(handle.pointer, CURLOPT_SHARE, share)
        setUp(handle)
        return handle
    }

    /// Keeps a handle that runs no request any more, unless `isReusable` is `false` or enough handles are kept.
    func add(_ handle: EasyHandle, isReusable: Bool) {
        if isReusable, handles.count < Self.maximum {
            handles.append(handle)
        } else {
            // The handle may outlive the pool, and a share in use cannot be freed.
            _ = ccurl_set_pointer(handle.pointer, CURLOPT_SHARE, nil)
        }
    }

    /// Frees the easy handles that were kept for reuse. Called before the multi handle of the pool is freed.
    func removeAll() { handles.removeAll() }
}
