import CCurl
internal import TowlineCore

/// The URL of a handle's request, taken apart: libcurl would read each text, put it together again and take that apart, for which
/// two small files of one origin differ in too little (`docs/performance.md`).
///
/// Confined to its engine thread.
final class RequestURL {
    private let parts = curl_url()
    /// Whose scheme, host and port they have.
    private var origin: HTTPURL.Origin?

    deinit { curl_url_cleanup(parts) }

    /// The URL's parts for `CURLOPT_CURLU`, until the next call; `nil` where libcurl is to read the text itself.
    func parts(of url: HTTPURL) -> OpaquePointer? {
        // `curl_url_set(3)` would write percent-encoded bytes in lower case, which is another text to whoever has signed it; of a
        // query without anything in it, nothing would be left.
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
