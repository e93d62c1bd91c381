/// Which redirects are followed (RFC 9110 §15.4).
package enum RedirectPolicy {
    /// Where an answer leads.
    ///
    /// - Parameters:
    ///   - url: what was asked.
    ///   - chain: the URLs that led there, in order.
    ///   - source: the URL that the user gave.
    ///   - known: where another redirect led, perhaps to the same origin.
    /// - Throws: `redirectRefused` for what is no URL of http or https, for more redirects than `terms` allow, for one that was
    ///   there before, and for one from https to http, unless `terms` allow that.
    static func target(
        of location: String, from url: HTTPURL, chain: [HTTPURL], source: HTTPURL, _ terms: TransferTerms,
        after known: HTTPURL? = nil
    ) throws(TowlineError) -> HTTPURL {
        let target: HTTPURL
        do {
            target = try url.resolving(location, after: known)
        } catch {
            throw TowlineError(.redirectRefused, "\(source): redirected wrongly: \(error.message)")
        }
        if chain.count >= terms.maxRedirects {
            throw TowlineError(.redirectRefused, "\(source): more than \(terms.maxRedirects) redirects")
        }
        if chain.contains(target) || url == target {
            throw TowlineError(.redirectRefused, "\(source): redirects in a circle, at \(target)")
        }
        if url.scheme == .https, target.scheme == .http, !terms.allowsDowngrade {
            throw TowlineError(
                .redirectRefused, "\(source): redirects from https to \(target); --allow-downgrade follows it")
        }
        return target
    }

    /// What the user is told of it: that another server is asked.
    package static func notice(from url: HTTPURL, to target: HTTPURL) -> TransferNotice? {
        url.origin == target.origin ? nil : TransferNotice(.info, .redirected, "redirected to \(target)")
    }
}
