extension HTTPURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without user information, and with the values of well-known signature and credential parameters of
    /// the query taken out (their names stay). For journals, messages and logs.
    package var withoutSecrets: String {
        guard let query else { return requestText }
        return origin.description + path + "?" + Self.redactedQuery(query)
    }

    /// `withoutSecrets`.
    package var description: String { withoutSecrets }
    /// `withoutSecrets`.
    package var debugDescription: String { withoutSecrets }
    /// No children: `dump` and failing expectations show no secret either.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Names of query parameters whose value grants access, in lower case: Amazon S3 and CloudFront, Google Cloud
    /// Storage, Azure (`sig`; `se`, `sp`, `sv` say when and what, and stay), Akamai, and common names of their own.
    private static let secretParameters = signatureParameters.union(credentialParameters)

    /// Those that sign a link: another value of them leads to the same file.
    private static let signatureParameters: Set<String> = [
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "awsaccesskeyid",
        "signature", "policy", "key-pair-id",
        "x-goog-signature", "x-goog-credential", "googleaccessid",
        "x-oss-signature", "x-oss-credential", "x-oss-security-token", "ossaccesskeyid", "security-token",
        "sig", "hdnea", "hdnts", "hdntl", "hmac",
    ]

    /// Those that say who asks, or are called so and say what is asked for: `download?key=a.pdf`.
    private static let credentialParameters: Set<String> = [
        "token", "__token__", "access_token", "accesstoken", "auth_token", "authtoken", "id_token", "refresh_token",
        "auth", "authorization", "authkey", "auth_key", "api_key", "apikey", "api-key", "key", "secret",
        "client_secret", "password", "passwd", "pwd", "jwt", "session", "sessionid", "session_id",
    ]

    /// The query with secret values taken out. `;` separates parameters in some dialects, so that a name behind it
    /// counts; the value of a secret parameter goes on to the next `&`.
    private static func redactedQuery(_ query: Substring) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false)
            .map { redactedPair($0) }
            .joined(separator: "&")
    }

    private static func redactedPair(_ pair: Substring) -> String {
        var kept: [Substring] = []
        for part in pair.split(separator: ";", omittingEmptySubsequences: false) {
            guard let equals = part.firstIndex(of: "="), isSecret(part[..<equals]) else {
                kept.append(part)
                continue
            }
            kept.append(part[...equals])
            break
        }
        return kept.joined(separator: ";")
    }

    private static func isSecret(_ name: Substring) -> Bool { secretParameters.contains(parameterName(name)) }

    private static func parameterName(_ name: Substring) -> String {
        let decoded = PercentEncoding.decoded(name) ?? Array(name.utf8)
        return ASCII.lowercased(String(decoding: decoded, as: UTF8.self))
    }

    /// Whether URLs that are this one `withoutSecrets` may lead to other files.
    package var isAmbiguousWithoutSecrets: Bool {
        guard let query else { return false }
        return query.split(whereSeparator: { $0 == "&" || $0 == ";" }).contains { part in
            guard let equals = part.firstIndex(of: "="), part.index(after: equals) < part.endIndex else { return false }
            return Self.credentialParameters.contains(Self.parameterName(part[..<equals]))
        }
    }

    /// A text that is no URL, for a message: nothing before the last `@`, no query, no raw control character.
    static func withoutSecrets(unparsed text: String) -> String {
        let bytes = text.utf8
        // A password may hold any byte, so the last @ decides, wherever it stands.
        let afterUser = bytes.lastIndex(of: 0x40).map { bytes[bytes.index(after: $0)...] } ?? bytes[...]
        let visible = afterUser.prefix { $0 != 0x3F && $0 != 0x23 }
        let shown = TerminalSafeText.make(String(decoding: visible.prefix(512), as: UTF8.self), width: 120)
        return shown.isEmpty ? "(empty)" : shown
    }
}
