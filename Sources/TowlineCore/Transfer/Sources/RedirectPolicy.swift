/// Decides which redirects are followed (RFC 9110 §15.4).
package enum RedirectPolicy {
    /// Returns the target of a redirect.
    ///
    /// - Parameters:
    ///   - location: the value of the `Location` field.
    ///   - url: the URL that was requested.
    ///   - chain: the earlier URLs of this chain of redirects, in order.
    ///   - source: the URL that the user gave, for error messages.
    /// - Throws: `redirectRefused` for a target that is not an http or https URL, for more redirects than `terms`
    ///   allow, and for a redirect from https to http, unless `terms` allow that. A redirect to an earlier URL is
    ///   followed: the server may respond differently to the second request, for example because of a cookie.
    static func target(
        of location: String, from url: HTTPURL, chain: [HTTPURL], source: HTTPURL, _ terms: TransferTerms
    ) throws(TowlineError) -> HTTPURL {
        let target: HTTPURL
        do {
            target = try url.resolving(location)
        } catch {
            throw TowlineError(.redirectRefused, "\(source): cannot follow a redirect: \(error.message)")
        }
        if chain.count >= terms.options.maximumRedirects {
            throw TowlineError(
                .redirectRefused,
                "\(source): too many redirects (limit: \(terms.options.maximumRedirects)), the last one to \(target)."
                    + " Check the URL, or \(Remedy.moreRedirects)")
        }
        if url.scheme == .https, target.scheme == .http, !terms.options.allowsDowngrade {
            throw TowlineError(
                .redirectRefused,
                "\(source): the server redirects from https to the unencrypted URL \(target)."
                    + " The redirect was not followed. To follow it, \(Remedy.unencrypted)")
        }
        return target
    }

    /// Returns whether a redirect leads to the requested URL itself. With `Retry-After`, such a redirect asks the
    /// client to repeat the request after that time.
    static func isSame(_ location: String, _ url: HTTPURL) -> Bool { (try? url.resolving(location)) == url }

    /// Returns a notice that the download continues at another server; `nil` if the origin is the same.
    package static func notice(from url: HTTPURL, to target: HTTPURL) -> TransferNotice? {
        url.origin == target.origin ? nil : TransferNotice(.info, .redirected, "redirected to \(target)")
    }
}
