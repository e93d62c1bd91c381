extension HTTPURL {
    /// Parses an absolute URL from a user or a server.
    ///
    /// - Removes spaces and tabs around the text. Refuses CR, LF and NUL: CR and LF would end the request line
    ///   (CVE-2017-6508), NUL would end the text for C. Refuses other control characters in the authority.
    /// - User information ends at the last `@` of the authority. Refuses a backslash in the authority, because
    ///   some programs read it as a `/`.
    /// - Percent-encodes bytes that a path or query must not contain (`ByteText`), removes dot segments
    ///   (RFC 3986 §5.2.4), and removes the fragment, which is never sent to a server (RFC 9110 §7.1).
    ///
    /// - Throws: `unusableURL`, with a message that shows no secret.
    package init(parsing text: String) throws(TowlineError) {
        let bytes = try Self.checkedBytes(of: text)
        let schemeEnd = bytes.firstIndex(of: 0x3A) ?? bytes.endIndex
        guard let scheme = Scheme(rawValue: ASCII.lowercased(String(decoding: bytes[..<schemeEnd], as: UTF8.self)))
        else { throw Self.unusable(text, "the URL must begin with http:// or https://") }
        let rest = bytes[schemeEnd...].dropFirst()
        guard rest.starts(with: [0x2F, 0x2F]) else {
            throw Self.unusable(text, "the URL must have // after http: or https:")
        }
        try self.init(scheme: scheme, afterSlashes: rest.dropFirst(2), text: text)
    }

    /// Parses an absolute URL like `init(parsing:)`, but faster if the text has the origin (scheme, host, port) of
    /// `known` and needs no normalization, as most URLs of a list. `known` does not affect the result.
    package init(parsing text: String, after known: HTTPURL?) throws(TowlineError) {
        if let known, let queryOffset = Self.queryOffset(in: text, after: known) {
            self.init(origin: known.origin, requestText: text, pathOffset: known.pathOffset, queryOffset: queryOffset)
        } else {
            try self.init(parsing: text)
        }
    }

    /// Returns the number of bytes before the `?` (or of all bytes) in a text that consists of the origin of `known`, a
    /// path and an optional query that need no normalization; `nil` for any other text.
    private static func queryOffset(in text: String, after known: HTTPURL) -> Int? {
        var (text, start) = (text, known.requestText)
        return text.withUTF8 { bytes in
            guard bytes.count > known.pathOffset, bytes.count <= maximumByteCount,
                start.withUTF8({ $0.prefix(known.pathOffset).elementsEqual(bytes.prefix(known.pathOffset)) })
            else { return nil }
            let rest = bytes[known.pathOffset...]
            let pathEnd = rest.firstIndex(of: 0x3F) ?? rest.endIndex
            return !rest.contains(0x23) && goesOut(rest, pathEnd: pathEnd) ? pathEnd : nil
        }
    }

    /// Parses the bytes of a URL after `scheme://`, also for references that begin with `//`. `text` is the whole URL,
    /// for error messages.
    init(scheme: Scheme, afterSlashes bytes: ArraySlice<UInt8>, text: String) throws(TowlineError) {
        let end = bytes.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? bytes.endIndex
        guard !bytes[..<end].contains(where: ASCII.isControl) else {
            throw Self.unusable(
                text,
                "the host name or the user name in the URL contains a control character, which must be removed")
        }
        let (userInfo, hostAndPort) = try Self.splitUserInfo(bytes[..<end], text: text)
        let (hostBytes, port) = try Self.splitPort(hostAndPort, text: text)
        guard let host = HostSyntax.normalized(hostBytes) else {
            throw Self.unusable(text, HostSyntax.problem(hostBytes))
        }
        let origin = Origin(scheme: scheme, host: host, port: port ?? scheme.defaultPort)
        try self.init(origin: origin, userInfo: userInfo, pathAndQuery: Self.pathAndQuery(of: bytes[end...]))
    }

    /// Returns the bytes of a URL without white space around them. Throws `unusableURL` for CR, LF, NUL, and a text
    /// that is too long.
    static func checkedBytes(of text: String) throws(TowlineError) -> ArraySlice<UInt8> {
        guard text.utf8.count <= maximumByteCount else {
            throw unusable(text, "the URL is too long and must be shortened to \(maximumByteCount) bytes")
        }
        var bytes = ByteText.encode(text)[...]
        while bytes.first == 0x20 || bytes.first == 0x09 { bytes.removeFirst() }
        while bytes.last == 0x20 || bytes.last == 0x09 { bytes.removeLast() }
        guard !bytes.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else {
            throw unusable(
                text, "the URL contains a line break or a NUL character, which must be percent-encoded or removed")
        }
        return bytes
    }

    /// Returns the normalized path and query to send, from the bytes after the host and port. Removes the fragment.
    static func pathAndQuery(of bytes: ArraySlice<UInt8>) -> String {
        let bytes = bytes[..<(bytes.firstIndex(of: 0x23) ?? bytes.endIndex)]
        let pathEnd = bytes.firstIndex(of: 0x3F) ?? bytes.endIndex
        if goesOut(bytes, pathEnd: pathEnd) { return String(decoding: bytes, as: UTF8.self) }
        return PercentEncoding.encodedForRequest(withoutDotSegments(bytes[..<pathEnd]) + bytes[pathEnd...])
    }

    /// Returns whether a path and query, the path ending before `pathEnd`, can be sent without normalization.
    private static func goesOut<Bytes: Collection<UInt8>>(_ bytes: Bytes, pathEnd: Bytes.Index) -> Bool {
        bytes.first == 0x2F && !hasDotSegments(bytes[..<pathEnd])
            && !bytes.contains(where: PercentEncoding.needsEscape)
    }

    /// Removes `.` and `..` (RFC 3986 §5.2.4) from a path that is empty or begins with `/`, in linear time. An empty
    /// path becomes `/` (RFC 9110 §4.2.3).
    static func withoutDotSegments(_ path: ArraySlice<UInt8>) -> [UInt8] {
        // Almost no path has dot segments.
        guard !path.isEmpty else { return [0x2F] }
        guard hasDotSegments(path) else { return Array(path) }
        var kept: [ArraySlice<UInt8>] = []
        let segments = path.dropFirst().split(separator: 0x2F, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isDot = segment.elementsEqual([0x2E])
            let isDouble = segment.elementsEqual([0x2E, 0x2E])
            if isDouble { _ = kept.popLast() }
            if !isDot && !isDouble {
                kept.append(segment)
            } else if index == segments.count - 1 {
                kept.append([])
            }
        }
        return [0x2F] + kept.joined(separator: [0x2F])
    }

    /// Returns whether a segment of the path begins with a dot, so that it may be `.` or `..`.
    private static func hasDotSegments(_ path: some Sequence<UInt8>) -> Bool {
        var previous: UInt8 = 0
        for byte in path {
            if byte == 0x2E, previous == 0x2F { return true }
            previous = byte
        }
        return false
    }

    private static func splitUserInfo(
        _ authority: ArraySlice<UInt8>, text: String
    ) throws(TowlineError) -> (String?, ArraySlice<UInt8>) {
        guard !authority.contains(0x5C) else {
            throw unusable(text, "the host name in the URL contains a backslash, which must be replaced by /")
        }
        guard let at = authority.lastIndex(of: 0x40) else { return (nil, authority) }
        let raw = authority[..<at]
        // A lone % is not an escape; a password may contain a % that was not encoded.
        let decoded = PercentEncoding.decoded(raw, escape: 0x25) ?? Array(raw)
        guard let userInfo = String(validating: decoded, as: UTF8.self), !decoded.contains(where: ASCII.isControl)
        else {
            throw unusable(
                text, "the user name and password in the URL must be UTF-8 text without control characters")
        }
        return (userInfo.isEmpty ? nil : userInfo, authority[(at + 1)...])
    }

    private static func splitPort(
        _ hostAndPort: ArraySlice<UInt8>, text: String
    ) throws(TowlineError) -> (ArraySlice<UInt8>, Int?) {
        let colon: Int?
        guard hostAndPort.first != 0x5B || hostAndPort.contains(0x5D) else {
            throw unusable(text, HostSyntax.problem(hostAndPort))
        }
        if let bracket = hostAndPort.lastIndex(of: 0x5D) {
            colon = hostAndPort[bracket...].dropFirst().startIndex < hostAndPort.endIndex ? bracket + 1 : nil
        } else {
            colon = hostAndPort.firstIndex(of: 0x3A)
        }
        guard let colon else { return (hostAndPort, nil) }
        let digits = hostAndPort[(colon + 1)...]
        guard hostAndPort[colon] == 0x3A else {
            throw unusable(text, "only a port or a path may follow the ] of the IPv6 address in the URL")
        }
        // RFC 3986 §3.2.3: an empty port is the scheme's own.
        if digits.isEmpty { return (hostAndPort[..<colon], nil) }
        guard let port = ASCII.number(digits), (1...65_535).contains(port) else {
            throw unusable(text, "the port in the URL must be a number from 1 to 65535")
        }
        return (hostAndPort[..<colon], Int(port))
    }

    /// Returns the error `unusableURL` about a text with the given problem. The message contains no secret of the URL.
    static func unusable(_ text: String, _ problem: String) -> TowlineError {
        TowlineError(.unusableURL, "\(problem): \(withoutSecrets(unparsed: text))")
    }
}

extension HTTPURL {
    /// Parses the URL of a mirror, another server with the same file. Throws `unusableURL` for an invalid URL, and
    /// `unusableOption` for one with credentials, because Towline sends no credentials to mirrors.
    package init(mirror text: String) throws(TowlineError) {
        try self.init(parsing: text)
        guard userInfo == nil else {
            throw TowlineError(
                .unusableOption,
                "the mirror URL \(withoutSecrets) must not contain a user name or password,"
                    + " because Towline sends no credentials to mirrors. Remove them from the URL")
        }
    }
}
