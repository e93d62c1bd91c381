extension HTTPURL {
    /// Parses a URL that a user typed: `host[:port][/path]` without a scheme is an http URL, as with curl and wget. A
    /// server that requires https redirects.
    ///
    /// - Throws: `unusableURL`. A text with another scheme (`ftp:`, `magnet:`) or with `@` gets no scheme: a user name
    ///   and password before the host would be sent unencrypted although the user did not write `http://`.
    package init(typed text: String) throws(TowlineError) {
        try self.init(parsing: Self.withScheme(text))
    }

    /// Returns the typed text, with `http://` added if the text has no scheme, and bytes that are not UTF-8
    /// (`ByteText`) percent-encoded, so that other programs understand the URL.
    package static func withScheme(_ text: String) -> String {
        let text = ByteText.percentEncoded(text)
        return lacksScheme(text) ? "http://" + text : text
    }

    /// Parses a URL that a user typed, like `init(typed:)`, but faster if the text has the origin (scheme, host, port)
    /// of `known` (`init(parsing:after:)`).
    package init(typed text: String, after known: HTTPURL?) throws(TowlineError) {
        try self.init(parsing: Self.withScheme(text), after: known)
    }

    private static func lacksScheme(_ text: String) -> Bool {
        let authority = text.utf8.prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard !authority.isEmpty, !authority.contains(0x40) else { return false }
        // A port after the colon is a number. The text after the colon of another scheme is not.
        return authority.last != 0x3A && HostSyntax.isHostAndPort(Array(authority)[...])
    }
}
