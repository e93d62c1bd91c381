import CCurl
internal import TowlineCore

/// An easy handle of libcurl, which runs one request at a time, the data that it points to, and the C callbacks that
/// call its `Attempt`.
///
/// Created for one set of connection options and reused for many attempts: only settings that differ between two
/// attempts are set again. Confined to one engine thread, a thread that runs libcurl.
final class EasyHandle {
    /// libcurl's own handle (`CURL *`), which is passed to its functions.
    let pointer: UnsafeMutableRawPointer
    /// The buffer for libcurl's error message, a C string; empty if libcurl reported no error.
    private let errorText: UnsafeMutableBufferPointer<CChar>
    /// The header fields of the request. libcurl's handle points to them, so they must stay alive.
    private var fieldList: FieldList?
    /// The parsed URL of the request. libcurl's handle points to it, so it must stay alive.
    private let url = RequestURL()
    /// The number of bytes that libcurl reads with one call for this handle's request; 0 before the first `prepare`.
    private(set) var bufferSize = 0
    /// The record of how a TLS connection watched by `watchCloseNotify` ends; `nil` if no connection is watched.
    private var closeWatch: UnsafeMutablePointer<ccurl_close_watch>?
    /// `true` once libcurl's trace of the request is on, which reports GOAWAY (`watchGoAway`).
    private var watchesGoAway = false
    /// `true` if the next request must open a new connection, because a reused one failed (`requireFreshConnection`).
    private var needsFreshConnection = false
    /// The addresses of the attempt's host in place of a DNS lookup; `nil` if DNS supplies them. libcurl's handle
    /// points to them, so they must stay alive.
    private var addresses: UnsafeMutablePointer<curl_slist>?

    /// The cookies of the download that `lend` set for the request, one per line of the Netscape format.
    var lentCookies: [String] = []

    /// Creates a handle without connection options; `nil` if memory ran out.
    init?() {
        guard let pointer = curl_easy_init() else { return nil }
        self.pointer = pointer
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0)
        _ = ccurl_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorText.baseAddress)
        _ = ccurl_set_data_callback(pointer, CURLOPT_HEADERFUNCTION, EasyHandle.header)
        _ = ccurl_set_data_callback(pointer, CURLOPT_WRITEFUNCTION, EasyHandle.body)
        _ = ccurl_set_prerequest_callback(pointer, EasyHandle.prerequest)
        _ = ccurl_set_socket_callback(pointer, EasyHandle.socketMade)
        _ = ccurl_set_trace_callback(pointer, EasyHandle.traced)
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(addresses)
        errorText.deallocate()
        ccurl_release_watch(closeWatch)
    }

    /// Sets the URL, the header fields and the read size of the next request, and the attempt that the callbacks call.
    /// The attempt must stay alive until the handle is removed from the multi handle.
    ///
    /// - Returns: `false` if memory ran out.
    func prepare(url: HTTPURL, fields: FieldList, bufferSize: Int, for attempt: Attempt) -> Bool {
        defer { fieldList = fields }
        errorText[0] = 0
        ccurl_release_watch(closeWatch)
        closeWatch = nil
        if watchesGoAway { set(CURLOPT_VERBOSE, 0) }
        watchesGoAway = false
        if needsFreshConnection { set(CURLOPT_FRESH_CONNECT, 0) }
        needsFreshConnection = false
        if addresses != nil { useAddresses(nil) }
        let context = Unmanaged.passUnretained(attempt).toOpaque()
        if bufferSize != self.bufferSize {
            set(CURLOPT_BUFFERSIZE, bufferSize)
            self.bufferSize = bufferSize
        }
        return url.requestText.withCString { ccurl_set_string(pointer, CURLOPT_URL, $0) } == CURLE_OK
            && ccurl_set_url(pointer, self.url.parts(of: url)) == CURLE_OK
            && ccurl_set_list(pointer, CURLOPT_HTTPHEADER, fields.pointer) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_HEADERDATA, context) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_WRITEDATA, context) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_PREREQDATA, context) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_OPENSOCKETDATA, context) == CURLE_OK
            && ccurl_set_pointer(pointer, CURLOPT_PRIVATE, context) == CURLE_OK
    }

    /// Makes TLS record how the connection ends, for a body that ends with it. Call it from a callback of the attempt.
    ///
    /// Such a body is complete only if the peer sent close_notify (RFC 9112 §9.8): otherwise anyone on the network path
    /// could have truncated it. libcurl 7.88 does not distinguish the two ends.
    func watchCloseNotify() {
        ccurl_release_watch(closeWatch)
        closeWatch = ccurl_watch_close_notify(pointer, Self.tlsIndex, Self.tlsEvent)
    }

    /// Returns whether a TLS connection that `watchCloseNotify` watches has not received close_notify, so a body that
    /// ended with the connection may be truncated. Returns `false` if no connection is watched.
    var wasCutOff: Bool { closeWatch?.pointee.was_closed == 0 }

    /// Sets the addresses that the next attempt connects to, in the form of `CURLOPT_RESOLVE(3)`; `nil` removes them.
    func useAddresses(_ text: String?) {
        let old = addresses
        addresses = text.flatMap { curl_slist_append(nil, $0) }
        _ = ccurl_set_list(pointer, CURLOPT_RESOLVE, addresses)
        curl_slist_free_all(old)
    }

    /// Makes the handle's next request, a repeated one, open a new connection instead of reusing one.
    func requireFreshConnection() {
        needsFreshConnection = true
        set(CURLOPT_FRESH_CONNECT, 1)
        errorText[0] = 0
    }

    /// Returns whether the attempt reuses a connection of an earlier request. Call it from a callback of the attempt,
    /// or after the attempt.
    var reusesConnection: Bool { number(CURLINFO_NUM_CONNECTS) == 0 }

    /// Makes libcurl's trace report a GOAWAY frame of HTTP/2 with an error code, which calls `Attempt.breakConnection`.
    /// libcurl mentions GOAWAY only in its trace.
    func watchGoAway() {
        watchesGoAway = true
        set(CURLOPT_VERBOSE, 1)
    }

    private static let traced:
        @convention(c) (
            UnsafeMutableRawPointer, curl_infotype, UnsafeMutablePointer<CChar>?, Int, UnsafeMutableRawPointer?
        ) -> Int32 = { handle, kind, bytes, count, _ in
            guard kind == CURLINFO_TEXT, let bytes else { return 0 }
            let text = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
            // RFC 9113 §7: code 0 is the graceful shutdown of a connection.
            if let code = text.firstRange(of: "GOAWAY, error="), text[code.upperBound...].first != "0" {
                attempt(of: handle)?.breakConnection()
            }
            return 0
        }

    /// Returns whether the connection negotiated HTTP/2. Call it from a callback of the attempt.
    var speaksHTTP2: Bool { ccurl_speaks_http2(pointer) != 0 }

    /// Sets a numeric option of libcurl. Ignores an option that this libcurl was built without.
    func set(_ option: CURLoption, _ value: Int) { _ = ccurl_set_long(pointer, option, value) }

    /// Sets a text option of libcurl, which keeps a copy. `nil` removes the text.
    func set(_ option: CURLoption, _ value: String?) {
        guard let value else { return _ = ccurl_set_string(pointer, option, nil) }
        ByteText.withCString(value) { _ = ccurl_set_string(pointer, option, $0) }
    }

    /// libcurl's description of the failure, which may contain text from the server; `nil` without a description.
    var errorDetail: String? {
        guard let base = errorText.baseAddress, base.pointee != 0 else { return nil }
        return String(cString: base)
    }

    /// Returns a number that libcurl recorded during the attempt; 0 if libcurl recorded no value.
    func number(_ info: CURLINFO) -> Int {
        var value = 0
        return ccurl_get_long(pointer, info, &value) == CURLE_OK ? value : 0
    }

    /// The length of the body according to the response's head; `nil` if the head has no length.
    var contentLength: Int64? {
        var length: curl_off_t = -1
        let code = ccurl_get_offset(pointer, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length)
        return code == CURLE_OK && length >= 0 ? Int64(length) : nil
    }

    /// Returns the attempt that an easy handle of libcurl runs; `nil` if it runs no attempt.
    static func attempt(of handle: UnsafeMutableRawPointer) -> Attempt? {
        var context: UnsafeMutableRawPointer?
        guard ccurl_get_pointer(handle, CURLINFO_PRIVATE, &context) == CURLE_OK, let context else { return nil }
        return Unmanaged<Attempt>.fromOpaque(context).takeUnretainedValue()
    }

    private static let header:
        @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
            bytes, size, count, context in
            guard let context else { return 0 }
            let attempt = Unmanaged<Attempt>.fromOpaque(context)
            return attempt._withUnsafeGuaranteedRef {
                $0.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }

    private static let body: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int =
        {
            bytes, size, count, context in
            guard let context else { return 0 }
            let attempt = Unmanaged<Attempt>.fromOpaque(context)
            return attempt._withUnsafeGuaranteedRef {
                $0.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }
        }

    private static let prerequest:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?, Int32, Int32
        ) -> Int32 = { context, _, _, _, localPort in
            guard let context else { return Int32(CURL_PREREQFUNC_ABORT) }
            let attempt = Unmanaged<Attempt>.fromOpaque(context).takeUnretainedValue()
            return Int32(attempt.willSendRequest(from: localPort) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
        }
}
