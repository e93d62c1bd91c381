/// Which redirects are followed (RFC 9110 §15.4).
package enum RedirectPolicy {
    /// Where an answer leads.
    ///
    /// - Parameters:
    ///   - url: what was asked.
    ///   - chain: the URLs that led there, in order.
    ///   - source: the URL that the user gave.
    ///   - known: where another redirect led, perhaps to the same origin.
    /// - Throws: `redirectRefused` for what is no URL of http or https, for more redirects than `terms` allow, and for
    ///   one from https to http, unless `terms` allow that. A redirect to an earlier URL is followed: the server may
    ///   respond differently to the second request, for example because of a cookie.
    static func target(
        of location: String, from url: HTTPURL, chain: [HTTPURL], source: HTTPURL, _ terms: TransferTerms,
        after known: HTTPURL? = nil
    ) throws(TowlineError) -> HTTPURL {
        let target: HTTPURL
        do {
            target = try url.resolving(location, after: known)
        } catch {
            throw TowlineError(.redirectRefused, "\(source): cannot follow a redirect: \(error.message)")
        }
        if chain.count >= terms.maxRedirects {
            throw TowlineError(
                .redirectRefused,
                "\(source): too many redirects (limit: \(terms.maxRedirects)), the last one to \(target)."
                    + " Check the URL, or raise the limit with --max-redirects")
        }
        if url.scheme == .https, target.scheme == .http, !terms.allowsDowngrade {
            throw TowlineError(
                .redirectRefused,
                "\(source): the server redirects from https to the unencrypted URL \(target)."
                    + " The redirect was not followed. Use --allow-downgrade to follow such redirects")
        }
        return target
    }

    /// Returns whether a redirect leads to the URL that was asked. With `Retry-After`, it means "later".
    static func isSame(_ location: String, _ url: HTTPURL) -> Bool {
        (try? url.resolving(location, after: nil)) == url
    }

    /// What the user is told of it: that another server is asked.
    package static func notice(from url: HTTPURL, to target: HTTPURL) -> TransferNotice? {
        url.origin == target.origin ? nil : TransferNotice(.info, .redirected, "redirected to \(target)")
    }
}
