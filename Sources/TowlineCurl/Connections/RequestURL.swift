import CCurl
internal import TowlineCore

/// The parsed URL of an easy handle's request, reused for the next URL of the same origin
/// (docs/internals/request-urls.md). Confined to one engine thread, a thread that runs libcurl.
final class RequestURL {
    private let parts = curl_url()
    /// The origin of the last URL, whose parts can be reused; `nil` before the first URL and after a failure.
    private var origin: HTTPURL.Origin?

    deinit { curl_url_cleanup(parts) }

    /// Returns the URL's parts for the option `CURLOPT_CURLU`, valid until the next call; `nil` if libcurl must parse
    /// the URL as text instead.
    func parts(of url: HTTPURL) -> OpaquePointer? {
        // `curl_url_set(3)` would write percent-encoded bytes in lower case, which breaks a signature of the URL, and
        // would drop an empty query.
        guard let parts, !url.pathAndQuery.utf8.contains(0x25), url.query.map({ !$0.isEmpty }) ?? true else {
            return nil
        }
        if origin != url.origin {
            origin = nil
            let flags = UInt32(CURLU_PATH_AS_IS | CURLU_DISALLOW_USER)
            guard curl_url_set(parts, CURLUPART_URL, url.requestText, flags) == CURLUE_OK else { return nil }
            origin = url.origin
            return parts
        }
        guard Self.set(CURLUPART_PATH, of: parts, to: url.path), Self.set(CURLUPART_QUERY, of: parts, to: url.query)
        else {
            origin = nil
            return nil
        }
        return parts
    }

    private static func set(_ part: CURLUPart, of parts: OpaquePointer, to text: Substring?) -> Bool {
        guard let text else { return curl_url_set(parts, part, nil, 0) == CURLUE_OK }
        return text.withCString { curl_url_set(parts, part, $0, 0) } == CURLUE_OK
    }
}
