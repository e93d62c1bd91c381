/// A strict `http` or `https` URL (RFC 3986), normalized to the form of a request.
///
/// One parser reads the URL, and the transport receives its output: two parsers that disagree about the end of the
/// host send requests to the wrong server (CVE-2024-38428, CVE-2024-10524). The parser therefore accepts a single
/// authority syntax, and `requestText` parses to the same URL again.
///
/// `description` is `withoutSecrets`, so that printing never shows a secret.
package struct HTTPURL: Hashable, Sendable {
    /// The supported schemes of a URL.
    package enum Scheme: String, Hashable, Sendable {
        /// Plain HTTP.
        case http
        /// HTTP over TLS.
        case https

        /// The port that is used for a URL without a port: 80 or 443.
        package var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// An origin: scheme, host and port (RFC 9110 §4.3.1). Credentials for one origin are never sent to another.
    package struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme of the origin, http or https.
        package let scheme: Scheme
        /// The host in ASCII, lower case; an IPv6 address in its brackets.
        package let host: String
        /// The port, 1 … 65535.
        package let port: Int

        /// Returns whether all three properties are equal. Compares those first that differ most often.
        package static func == (left: Origin, right: Origin) -> Bool {
            left.port == right.port && left.host == right.host && left.scheme == right.scheme
        }

        /// The text `https://host:port`, without the scheme's default port.
        package var description: String {
            var text = ""
            write(to: &text, beside: 0)
            return text
        }

        /// Appends `scheme://host:port`, as in `description`, to a URL that is being built, and reserves space in the
        /// text for `more` further bytes.
        func write(to text: inout String, beside more: Int) {
            text.reserveCapacity(text.utf8.count + host.utf8.count + 16 + more)
            text += scheme.rawValue
            text += "://"
            text += host
            if port != scheme.defaultPort {
                text += ":"
                text += String(port)
            }
        }
    }

    /// The maximum length of a URL in bytes, before and after normalization.
    package static let maximumByteCount = 16 * 1024

    /// The scheme, host and port of the URL.
    package let origin: Origin
    /// The user information, `name` or `name:password`, percent-decoded; never empty, `nil` if absent.
    package let userInfo: String?
    /// The full URL without user information and fragment, as given to the transport.
    package let requestText: String
    /// The number of bytes of `requestText` before the path.
    let pathOffset: Int
    /// The number of bytes of `requestText` before the `?`, or its full length if the URL has no query.
    private let queryOffset: Int

    /// The scheme of the URL, http or https.
    package var scheme: Scheme { origin.scheme }
    /// The user information as `name:password`, with an empty password if the URL has only a name; `nil` if absent.
    package var credentials: String? { userInfo.map { $0.contains(":") ? $0 : $0 + ":" } }
    /// The host in ASCII (`xn--` for other letters), lower case; an IPv6 address in its brackets, with its zone.
    package var host: String { origin.host }
    /// The port of the URL, or the default port of the scheme.
    package var port: Int { origin.port }
    /// The path and query of the request: ASCII, begins with `/`, without dot segments.
    package var pathAndQuery: Substring { requestText[index(pathOffset)...] }
    /// The path, percent-encoded.
    package var path: Substring { requestText[index(pathOffset)..<index(queryOffset)] }
    /// The query without its `?`; `nil` if the URL has no `?`.
    package var query: Substring? {
        queryOffset < requestText.utf8.count ? requestText[index(queryOffset + 1)...] : nil
    }

    private func index(_ offset: Int) -> String.Index {
        requestText.utf8.index(requestText.startIndex, offsetBy: offset)
    }

    /// The last component of the path, percent-decoded once, or encoded if the result is not UTF-8; `nil` if the path
    /// ends in `/`. A hint for a file name; untrusted text: see `SafeFileName`.
    package var lastPathComponent: String? {
        var text = requestText
        let (last, isPlain): (String, Bool) = text.withUTF8 { bytes in
            let path = bytes[pathOffset..<queryOffset]
            let last = path[((path.lastIndex(of: 0x2F) ?? pathOffset - 1) + 1)...]
            return (String(decoding: last, as: UTF8.self), !last.contains(0x25))
        }
        guard !last.isEmpty else { return nil }
        return isPlain ? last : PercentEncoding.decoded(last).flatMap { String(validating: $0, as: UTF8.self) } ?? last
    }

    /// A short name of the URL for people: its last path component, or its host. Untrusted text.
    package var displayName: String { lastPathComponent ?? host }

    /// Creates a URL from components that were checked and normalized. Throws `unusableURL` if the URL is too long.
    init(origin: Origin, userInfo: String?, pathAndQuery: String) throws(TowlineError) {
        self.origin = origin
        self.userInfo = userInfo
        var text = ""
        origin.write(to: &text, beside: pathAndQuery.utf8.count)
        pathOffset = text.utf8.count
        text += pathAndQuery
        requestText = text
        queryOffset = text.withUTF8 { [pathOffset] bytes in bytes[pathOffset...].firstIndex(of: 0x3F) ?? bytes.count }
        guard text.utf8.count <= Self.maximumByteCount else {
            let shown = TerminalSafeText.make(withoutSecrets, width: 120)
            throw TowlineError(
                .unusableURL,
                "the URL is too long and must be shortened to \(Self.maximumByteCount) bytes: \(shown)")
        }
    }

    /// Creates a URL without user information from a text that was checked and needs no normalization.
    init(origin: Origin, requestText: String, pathOffset: Int, queryOffset: Int) {
        self.origin = origin
        userInfo = nil
        self.requestText = requestText
        self.pathOffset = pathOffset
        self.queryOffset = queryOffset
    }

    /// Returns whether two URLs are equal, by their normalized texts (with scheme, host and port) and user information.
    package static func == (left: HTTPURL, right: HTTPURL) -> Bool {
        left.requestText == right.requestText && left.userInfo == right.userInfo
    }

    /// Hashes the properties that `==` compares.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(requestText)
        hasher.combine(userInfo)
    }
}
