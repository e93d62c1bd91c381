extension HTTPURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without user information and without the values of well-known signature and credential parameters of
    /// the query (the names remain). For journals, messages and logs.
    package var withoutSecrets: String {
        guard let query else { return requestText }
        return origin.description + path + "?" + Self.redactedQuery(query)
    }

    /// The URL without its secrets, the same as `withoutSecrets`, so that printing shows no password.
    package var description: String { withoutSecrets }
    /// The URL without its secrets, the same as `withoutSecrets`, so that a debugger shows no password.
    package var debugDescription: String { withoutSecrets }
    /// A reflection mirror without children, so that `dump` and failing tests show no secret of the URL.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// The parameter names whose values are secret in every URL, in lower case.
    private static let secrets: Set<String> = [
        // Signatures of links: Amazon, Google Cloud and Alibaba Cloud Storage, Azure, Akamai.
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
        "x-oss-signature", "x-oss-credential", "x-oss-security-token", "hdnea", "hdnts", "hdntl",
        "awsaccesskeyid", "googleaccessid", "ossaccesskeyid", "signature", "security-token", "sig", "hmac",
        // Credentials, or names of files: `download?key=a.pdf`.
        "token", "__token__", "access_token", "accesstoken", "auth_token", "authtoken", "id_token", "refresh_token",
        "auth", "authorization", "authkey", "auth_key", "api_key", "apikey", "api-key", "key", "secret",
        "client_secret", "password", "passwd", "pwd", "jwt", "session", "sessionid", "session_id",
    ]

    /// Returns whether the value of a query parameter is secret. The common word `policy` and `key-pair-id` are
    /// signatures of CloudFront only together with its other parameters.
    ///
    /// - Parameter names: the names of all parameters of the query, in lower case.
    private static func isSecret(_ name: String, beside names: Set<String>) -> Bool {
        switch name {
        case "policy": names.contains("key-pair-id")
        case "key-pair-id": names.contains("signature")
        default: secrets.contains(name)
        }
    }

    /// Returns the names of the parameters of a query, in lower case.
    static func names(in query: Substring) -> Set<String> {
        Set(
            query.split(whereSeparator: { $0 == "&" || $0 == ";" }).compactMap { part in
                part.firstIndex(of: "=").map { parameterName(part[..<$0]) }
            })
    }

    /// Returns the query without secret values. `;` separates parameters in some dialects, so a name after `;` is
    /// checked, but the value of a secret parameter extends to the next `&`.
    static func redactedQuery(_ query: Substring) -> String {
        let names = names(in: query)
        return query.split(separator: "&", omittingEmptySubsequences: false)
            .map { redactedPair($0, names) }
            .joined(separator: "&")
    }

    private static func redactedPair(_ pair: Substring, _ names: Set<String>) -> String {
        var kept: [Substring] = []
        for part in pair.split(separator: ";", omittingEmptySubsequences: false) {
            guard let equals = part.firstIndex(of: "="),
                isSecret(parameterName(part[..<equals]), beside: names)
            else {
                kept.append(part)
                continue
            }
            kept.append(part[...equals])
            break
        }
        return kept.joined(separator: ";")
    }

    private static func parameterName(_ name: Substring) -> String {
        let decoded = PercentEncoding.decoded(name) ?? Array(name.utf8)
        return ASCII.lowercased(String(decoding: decoded, as: UTF8.self))
    }

    /// Returns the query without the parameters of a signature scheme.
    static func query(_ query: Substring, without scheme: SignatureScheme) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false)
            .filter { pair in
                guard let equals = pair.firstIndex(of: "="), !pair.contains(";") else { return true }
                return !scheme.contains(parameterName(pair[..<equals]))
            }
            .joined(separator: "&")
    }

    /// Returns the text of an invalid URL, shortened and safe to show in a message: without the text before the last
    /// `@`, the query and raw control characters.
    static func withoutSecrets(unparsed text: String) -> String {
        let bytes = text.utf8
        // A password may contain any byte, so the last @ decides, at any position.
        let afterUser = bytes.lastIndex(of: 0x40).map { bytes[bytes.index(after: $0)...] } ?? bytes[...]
        let visible = afterUser.prefix { $0 != 0x3F && $0 != 0x23 }
        let shown = TerminalSafeText.make(String(decoding: visible.prefix(512), as: UTF8.self), width: 120)
        return shown.isEmpty ? "(empty)" : shown
    }
}
