import CCurl

/// Facts about the libcurl library that hold for the whole process: its initialization, its version and its texts.
package enum CurlLibrary {
    /// The result of libcurl's global initialisation; libcurl is unusable unless it is `CURLE_OK`. The first access
    /// runs it once; concurrent accesses wait for it (`curl_global_init(3)`: not safe to run concurrently before 7.84,
    /// and never needed twice).
    static let initialisation: CURLcode = ccurl_global_init()

    /// The versions of libcurl and the libraries that it uses, each as NAME/VERSION (curl_version(3)).
    package static var versions: String { String(cString: curl_version()) }

    /// `true` if libcurl reports an HTTP/2 stream that ends without END_STREAM as a failure (8.1 and later). Before
    /// 8.1, a reset with code 0 and a connection that nghttp2 aborts look like the end of the response.
    package static let provesStreamEnd = ccurl_version() >= 0x080100

    /// Returns libcurl's description of a result code, in English.
    static func text(_ code: CURLcode) -> String {
        guard let text = curl_easy_strerror(code) else { return "unknown libcurl error \(code.rawValue)" }
        return String(cString: text)
    }
}
