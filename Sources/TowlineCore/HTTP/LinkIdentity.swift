/// The relation of a URL to the URL that a file on disk came from.
package enum LinkRelation: Hashable, Sendable {
    /// Both URLs are equal without the fragment: one download.
    case same
    /// Both URLs differ only in the parameters of one complete signature scheme. They lead to the same file unless the
    /// bytes show otherwise.
    case signedAgain
    /// The file on disk lacks the data for a comparison. Only bytes or validators can show whether the files are equal.
    case unknown
    /// The URLs lead to different files.
    case different
}

/// The properties of a URL that tell files apart: which URLs are one download, and which are one link signed again.
///
/// Contains secrets: only `text` may be stored or shown.
package struct LinkIdentity: Hashable, Sendable {
    /// The URL without secrets (`HTTPURL.withoutSecrets`), as journals store it.
    package let text: String
    /// The URL without the fragment. May contain secrets.
    package let exact: String
    /// The URL without the parameters of its signature scheme, after the name of the scheme; `nil` if the URL has no
    /// complete scheme. May contain secrets.
    package let unsigned: String?
    /// The text that all links have in common that may be this link signed again. Contains no secrets.
    package let group: String
    /// `true` if `text` lacks values that may select the file, such as that of `?key=`.
    package let isAmbiguous: Bool
    /// `true` if the URL contains a secret value, which `text` lacks.
    private let hasSecrets: Bool

    /// Creates the identity of a URL.
    package init(_ url: HTTPURL) {
        text = url.withoutSecrets
        exact = url.requestText
        guard let query = url.query else {
            (unsigned, group, isAmbiguous, hasSecrets) = (nil, text, false, false)
            return
        }
        let scheme = SignatureScheme.complete(in: HTTPURL.names(in: query))
        let rest = scheme.map { HTTPURL.query(query, without: $0) } ?? String(query)
        let shown = HTTPURL.redactedQuery(rest[...])
        isAmbiguous = shown != rest
        hasSecrets = isAmbiguous || scheme != nil && HTTPURL.redactedQuery(query) != query
        guard let scheme else {
            (unsigned, group) = (nil, text)
            return
        }
        let start = "\(scheme.name) \(url.origin.description)\(url.path)?"
        (unsigned, group) = (start + rest, start + shown)
    }

    /// `true` if files that come from this URL must store a digest, because `text` does not identify the URL.
    package var needsDigest: Bool { isAmbiguous || unsigned != nil }

    /// Returns the relation of this URL to another URL that is known completely.
    package func relation(to other: LinkIdentity) -> LinkRelation {
        if exact == other.exact { return .same }
        return unsigned != nil && unsigned == other.unsigned ? .signedAgain : .different
    }

    /// Returns the `group` of a stored URL without secrets.
    package static func group(of stored: String) -> String {
        (try? HTTPURL(parsing: stored)).map { LinkIdentity($0).group } ?? stored
    }

    /// Returns whether a stored URL without secrets may be this one with another signature, according to its text.
    package func isInGroup(of stored: String) -> Bool {
        guard unsigned != nil, let url = try? HTTPURL(parsing: stored) else { return false }
        let other = LinkIdentity(url)
        return other.unsigned != nil && other.group == group
    }

    /// The result of comparing this URL with the digest that a file on disk stores.
    package enum DigestMatch: Hashable, Sendable {
        /// The digest is that of this URL.
        case exact
        /// The digest is that of this URL with another signature.
        case unsigned
        /// The digest is that of another URL.
        case none
    }

    /// Returns the relation of this URL to the URL of a file on disk.
    ///
    /// - Parameters:
    ///   - match: the result of comparing the digest of the file; `nil` if the file has no digest, because it needs none
    ///     or an older version of Towline wrote it.
    ///   - hasSameText: `true` if both URLs are equal without secrets.
    ///   - hasSameGroup: `true` if both URLs have the same complete signature scheme and are otherwise equal without
    ///     secrets; `false` if that is not known.
    package func relation(stored match: DigestMatch?, hasSameText: Bool, hasSameGroup: Bool) -> LinkRelation {
        switch match {
        case .exact: return .same
        case .unsigned: return .signedAgain
        // The secrets of this URL were removed after its download, so that nothing can be compared.
        case .some(.none): return hasSameText && !hasSecrets ? .unknown : .different
        case nil:
            if hasSameText { return isAmbiguous ? .unknown : .same }
            guard hasSameGroup, unsigned != nil else { return .different }
            return isAmbiguous ? .unknown : .signedAgain
        }
    }
}
