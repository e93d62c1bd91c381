/// A strict `http` or `https` URL (RFC 3986), in the one form in which it goes out.
///
/// There is one parser, and what it read is what the transport is given: two parsers that disagree on where the host
/// ends are how requests end up elsewhere (CVE-2024-38428, CVE-2024-10524). So there is a single authority syntax,
/// everything else is refused, and `requestText` parses to the same URL again.
///
/// Printing never shows a secret: `description` is `withoutSecrets`.
package struct HTTPURL: Hashable, Sendable {
    /// The schemes that are spoken.
    package enum Scheme: String, Hashable, Sendable {
        /// Plain HTTP.
        case http
        /// HTTP over TLS.
        case https

        /// The port where none is named.
        package var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// Who answers (RFC 9110 §4.3.1). Credentials never go from one origin to another.
    package struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme.
        package let scheme: Scheme
        /// The host in ASCII, lower case; an IPv6 address in its brackets.
        package let host: String
        /// The port, 1 … 65535.
        package let port: Int

        /// What differs most often first.
        package static func == (left: Origin, right: Origin) -> Bool {
            left.port == right.port && left.host == right.host && left.scheme == right.scheme
        }

        /// `https://host:port`, without the port where it is the scheme's own.
        package var description: String {
            var text = ""
            write(to: &text, beside: 0)
            return text
        }

        /// Adds it to a text, which gets so many bytes more afterwards.
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

    /// A URL is not longer, neither as it was given nor as it goes out.
    package static let maximumByteCount = 16 * 1024

    /// Scheme, host and port.
    package let origin: Origin
    /// `name` or `name:password` with percent-encoding undone; never empty.
    package let userInfo: String?
    /// The full URL without user information and fragment: what the transport is given.
    package let requestText: String
    /// Of them the bytes before the path.
    let pathOffset: Int
    /// And those before the `?`, or all.
    private let queryOffset: Int

    /// The scheme.
    package var scheme: Scheme { origin.scheme }
    /// The user information as `name:password`.
    package var credentials: String? { userInfo.map { $0.contains(":") ? $0 : $0 + ":" } }
    /// The host in ASCII (`xn--` for other letters), lower case; an IPv6 address in its brackets, with its zone.
    package var host: String { origin.host }
    /// The port, named or the scheme's own.
    package var port: Int { origin.port }
    /// Path and query as they go out: ASCII, begins with `/`, without dot segments.
    package var pathAndQuery: Substring { requestText[index(pathOffset)...] }
    /// The path alone, percent-encoded.
    package var path: Substring { requestText[index(pathOffset)..<index(queryOffset)] }
    /// The query alone without its `?`, `nil` if there is no `?`.
    package var query: Substring? {
        queryOffset < requestText.utf8.count ? requestText[index(queryOffset + 1)...] : nil
    }

    private func index(_ offset: Int) -> String.Index {
        requestText.utf8.index(requestText.startIndex, offsetBy: offset)
    }

    /// The path's last component with percent-encoding undone once, or as it is where that is not UTF-8; `nil` if the
    /// path ends in `/`. A hint for a name, and as hostile as any: see `SafeFileName`.
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

    /// Makes a URL of checked components; refuses one that has grown too long.
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

    /// Makes a URL of a text that is checked and goes out as it is.
    init(origin: Origin, requestText: String, pathOffset: Int, queryOffset: Int) {
        self.origin = origin
        userInfo = nil
        self.requestText = requestText
        self.pathOffset = pathOffset
        self.queryOffset = queryOffset
    }

    /// The origin's `/`: nothing of this URL that may be a secret.
    package var root: HTTPURL {
        var text = ""
        origin.write(to: &text, beside: 1)
        let offset = text.utf8.count
        text += "/"
        return HTTPURL(origin: origin, requestText: text, pathOffset: offset, queryOffset: offset + 1)
    }

    /// The text has the origin in it, and in one form only.
    package static func == (left: HTTPURL, right: HTTPURL) -> Bool {
        left.requestText == right.requestText && left.userInfo == right.userInfo
    }

    /// As `==` compares.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(requestText)
        hasher.combine(userInfo)
    }
}
