extension HTTPURL {
    /// Resolves `reference`, the value of a `Location` or `Link` field, against this URL (RFC 3986 §5.2).
    ///
    /// A reference without an authority keeps this URL's user information. A reference with an authority does not.
    ///
    /// - Throws: `redirectRefused` for an empty reference, a scheme other than http and https, and every error of
    ///   `init(parsing:)`, because the mistake is the server's, not the user's.
    package func resolving(_ reference: String) throws(TowlineError) -> HTTPURL {
        do {
            return try resolved(reference)
        } catch {
            throw TowlineError(
                .redirectRefused, "the server redirects from \(self) to an invalid URL: \(error.message)")
        }
    }

    private func resolved(_ reference: String) throws(TowlineError) -> HTTPURL {
        let bytes = try Self.checkedBytes(of: reference)
        guard !bytes.isEmpty else {
            throw TowlineError(.unusableURL, "the Location header of the server's redirect is empty")
        }
        if Self.hasScheme(bytes) { return try withZone(HTTPURL(parsing: reference)) }
        if bytes.starts(with: [0x2F, 0x2F]) {
            return try withZone(HTTPURL(scheme: scheme, afterSlashes: bytes.dropFirst(2), text: reference))
        }
        return try HTTPURL(
            origin: origin, userInfo: userInfo, pathAndQuery: Self.pathAndQuery(of: merged(bytes)[...]))
    }

    /// Returns a URL with this URL's IPv6 zone (network interface) if it names the same address without one. The server
    /// does not know this machine's zones.
    private func withZone(_ url: HTTPURL) throws(TowlineError) -> HTTPURL {
        guard url.host != host, url.host == HostSyntax.withoutZone(host) else { return url }
        let origin = Origin(scheme: url.scheme, host: host, port: url.port)
        return try HTTPURL(origin: origin, userInfo: url.userInfo, pathAndQuery: String(url.pathAndQuery))
    }

    /// Returns the path, query and fragment of a reference merged with this URL's (RFC 3986 §5.2.2 and §5.2.3).
    private func merged(_ reference: ArraySlice<UInt8>) -> [UInt8] {
        switch reference.first {
        case 0x2F: return Array(reference)
        case 0x3F: return Array(path.utf8) + reference
        case 0x23: return Array(pathAndQuery.utf8)
        default:
            let base = Array(path.utf8)
            return Array(base[...(base.lastIndex(of: 0x2F) ?? 0)]) + reference
        }
    }

    /// Returns whether the bytes begin with a scheme, `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) ":"` (RFC 3986 §3.1).
    private static func hasScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, ASCII.isLetter(first) else { return false }
        let end = bytes.firstIndex {
            !ASCII.isLetter($0) && !ASCII.isDigit($0) && $0 != 0x2B && $0 != 0x2D && $0 != 0x2E
        }
        return end.map { bytes[$0] == 0x3A } ?? false
    }
}
