import CCurl

/// The process-wide side of libcurl.
package enum CurlLibrary {
    /// The result of libcurl's global initialisation: done once, by whoever asks first; the others wait for it
    /// (`curl_global_init(3)`: not safe to run twice at once before 7.84, and never needed twice).
    static let initialisation: CURLcode = ccurl_global_init()

    /// libcurl and the libraries that it uses, each as NAME/VERSION (curl_version(3)).
    package static var versions: String { String(cString: curl_version()) }

    /// libcurl reports a stream that ends without END_STREAM as a failure (8.1). Before, a reset with code 0 and a
    /// connection that nghttp2 gives up look like the end of the response.
    package static let provesStreamEnd = ccurl_version() >= 0x080100

    /// What libcurl says about a code.
    static func text(_ code: CURLcode) -> String {
        guard let text = curl_easy_strerror(code) else { return "unknown libcurl error \(code.rawValue)" }
        return String(cString: text)
    }
}
