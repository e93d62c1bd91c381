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

    /// The effect of a query parameter on the file that the URL returns. It decides whether the value of the parameter
    /// is hidden in messages.
    private enum Parameter {
        /// The parameter selects the file that the server returns. Messages show its value.
        case plain
        /// The parameter signs a link: another value returns the same file. Messages hide its value.
        case signature
        /// The parameter identifies the user, or has such a name but selects the file: `download?key=a.pdf`. Messages
        /// hide its value.
        case credential
    }

    /// The parameter names that are always signatures of links: Amazon, Google Cloud and Alibaba Cloud Storage, Akamai.
    private static let signatures: Set<String> = [
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
        "x-oss-signature", "x-oss-credential", "x-oss-security-token", "hdnea", "hdnts", "hdntl",
    ]

    /// Parameter names that count as signatures of a link only if the query also has one of the names listed for them,
    /// because they are common words: Amazon S3 (version 2), Google and Alibaba likewise, CloudFront, Azure (whose
    /// `se`, `sp` and `sv` give the time and the rights, and remain).
    private static let kin: [String: Set<String>] = {
        let signers: Set<String> = ["awsaccesskeyid", "googleaccessid", "ossaccesskeyid", "key-pair-id"]
        var kin = Dictionary(uniqueKeysWithValues: signers.map { ($0, Set(["signature"])) })
        kin["signature"] = signers.union(["expires"])
        kin["policy"] = ["key-pair-id"]
        kin["security-token"] = ["signature"]
        kin["sig"] = ["sv", "se", "expires", "expire"]
        kin["hmac"] = ["exp", "expires", "expire"]
        return kin
    }()

    /// The names of signature parameters in `kin` whose values are hidden in every URL, unlike the values of `policy`
    /// and `key-pair-id`.
    private static let loneSecrets: Set<String> = [
        "awsaccesskeyid", "googleaccessid", "ossaccesskeyid", "signature", "security-token", "sig", "hmac",
    ]

    private static let credentials: Set<String> = [
        "token", "__token__", "access_token", "accesstoken", "auth_token", "authtoken", "id_token", "refresh_token",
        "auth", "authorization", "authkey", "auth_key", "api_key", "apikey", "api-key", "key", "secret",
        "client_secret", "password", "passwd", "pwd", "jwt", "session", "sessionid", "session_id",
    ]

    /// Returns the effect of a query parameter by its name, which decides whether its value is hidden.
    ///
    /// - Parameter names: the names of all parameters of the query, in lower case.
    private static func kind(of name: String, beside names: Set<String>) -> Parameter {
        if signatures.contains(name) { return .signature }
        if let kin = kin[name] {
            guard names.isDisjoint(with: kin) else { return .signature }
            return loneSecrets.contains(name) ? .credential : .plain
        }
        return credentials.contains(name) ? .credential : .plain
    }

    private static func names(in query: Substring) -> Set<String> {
        Set(
            query.split(whereSeparator: { $0 == "&" || $0 == ";" }).compactMap { part in
                part.firstIndex(of: "=").map { parameterName(part[..<$0]) }
            })
    }

    /// Returns the query without secret values. `;` separates parameters in some dialects, so a name after `;` is
    /// checked, but the value of a secret parameter extends to the next `&`.
    private static func redactedQuery(_ query: Substring) -> String {
        let names = names(in: query)
        return query.split(separator: "&", omittingEmptySubsequences: false)
            .map { redactedPair($0, names) }
            .joined(separator: "&")
    }

    private static func redactedPair(_ pair: Substring, _ names: Set<String>) -> String {
        var kept: [Substring] = []
        for part in pair.split(separator: ";", omittingEmptySubsequences: false) {
            guard let equals = part.firstIndex(of: "="),
                kind(of: parameterName(part[..<equals]), beside: names) != .plain
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

    /// `true` if another URL with the same `withoutSecrets` may return another file: the query has a credential
    /// parameter, which may select the file.
    package var isAmbiguousWithoutSecrets: Bool {
        guard let query else { return false }
        let names = Self.names(in: query)
        return query.split(whereSeparator: { $0 == "&" || $0 == ";" }).contains { part in
            guard let equals = part.firstIndex(of: "="), part.index(after: equals) < part.endIndex else { return false }
            return Self.kind(of: Self.parameterName(part[..<equals]), beside: names) == .credential
        }
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
