// Responses without the file (RFC 9110 §15): catalogue rows 38–43, 48, 49, 59, 68.
extension Fault {
    /// Rows 39, 40, 42: `status` with a short text.
    package static func status(_ status: Int, fields: [(String, String)] = []) -> Fault {
        Fault("status") { _ in Reply(status, fields, text: "status \(status)\n") }
    }

    /// Rows 39, 43: 503.
    package static let unavailable = status(503).named("unavailable")

    /// Row 41: 403, as for a signature that has expired.
    package static let forbidden = status(403).named("forbidden")

    /// Row 42: 404.
    package static let notFound = status(404).named("notFound")

    /// Row 42: 410.
    package static let gone = status(410).named("gone")

    /// Row 24 of the rules: 204 without a body.
    package static let noContent = Fault("noContent") { _ in Reply(204) }

    /// Row 24 of the rules: 304 for a request without a condition.
    package static let unaskedNotModified = Fault("unaskedNotModified") { _ in Reply(304) }

    /// Row 38: 429, or another status, with `value` as the value of Retry-After.
    package static func retryAfter(_ value: String, status: Int = 429) -> Fault {
        Fault("retryAfter") { _ in Reply(status, [("Retry-After", value)], text: "try again later\n") }
    }

    /// Row 38: a redirect to the same URL, with `value` as the value of Retry-After.
    package static func redirectLater(_ value: String) -> Fault {
        Fault("redirectLater") {
            Reply(302, [("Location", $0.request.target), ("Retry-After", value)], text: "try again later\n")
        }
    }

    /// Row 42: the correct reply with the status 203 instead of 200, and without ranges.
    package static let transformed = Fault("transformed") { context in context.whole.head { $0.status = 203 } }

    /// Row 36: 304 to each request with If-Range (WEBrick).
    package static let confusesIfRange = Fault("confusesIfRange") { context in
        context.request.field("If-Range") == nil ? context.correct : Reply(304)
    }

    /// Row 36: the file even if it is unchanged: If-None-Match and If-Modified-Since are ignored.
    package static let ignoresConditions = Fault("ignoresConditions") { context in
        var request = context.request
        request.fields.removeAll { ["if-none-match", "if-modified-since"].contains($0.0.lowercased()) }
        return RangeServer.reply(to: request, version: context.version, resource: context.resource)
    }

    /// Row 36: 304 to every condition, with the ETag of the current version.
    package static let confirmsEveryCondition = Fault("confirmsEveryCondition") { context in
        let isConditional = ["If-None-Match", "If-Modified-Since"].contains { context.request.field($0) != nil }
        let tag = context.version.etag.field.map { ("ETag", $0) }
        return isConditional ? Reply(304, tag.map { [$0] } ?? []) : context.correct
    }

    /// Row 36: 412 to every request with If-None-Match.
    package static let refusesConditions = Fault("refusesConditions") { context in
        context.request.field("If-None-Match") == nil ? context.correct : Reply(412, text: "no conditions\n")
    }

    /// Row 38: Retry-After as a date `seconds` from now, with a Date field for comparison.
    package static func retryAfterDate(secondsFromNow seconds: Int64, status: Int = 429) -> Fault {
        Fault("retryAfterDate") { _ in
            let now = HTTPDateText.now
            let fields = [("Date", HTTPDateText.format(now)), ("Retry-After", HTTPDateText.format(now + seconds))]
            return Reply(status, fields, text: "try again later\n")
        }
    }

    /// Row 38: Retry-After that is neither a number nor a date.
    package static let retryAfterGarbage = retryAfter("soon, I hope").named("retryAfterGarbage")

    /// Row 38: Retry-After of 10¹² seconds.
    package static let retryAfterHuge = retryAfter("1000000000000").named("retryAfterHuge")

    /// Rows 48, 49: a redirect to any location: empty, `file:///etc/passwd`, `javascript:alert(1)`, another scheme,
    /// host or port.
    package static func redirect(_ status: Int = 302, to location: String) -> Fault {
        Fault("redirect") { _ in Reply(status, [("Location", location)], text: "moved\n") }
    }

    /// Row 48: a redirect without a Location field.
    package static let redirectNowhere = status(302).named("redirectNowhere")

    /// Row 48: a redirect to the same target.
    package static let redirectLoop = Fault("redirectLoop") {
        Reply(302, [("Location", $0.request.target)], text: "moved\n")
    }

    /// Row 48: `hops` redirects in a row, `?hop=1`, `?hop=2` …, then the correct reply.
    package static func redirectChain(hops: Int) -> Fault {
        Fault("redirectChain") { context in
            let query = context.request.query ?? ""
            let hop = query.hasPrefix("hop=") ? Int(query.dropFirst(4)) ?? 0 : 0
            guard hop < hops else { return context.correct }
            return Reply(302, [("Location", "\(context.request.path)?hop=\(hop + 1)")], text: "moved\n")
        }
    }

    /// Row 48: an endless sequence of redirects with different targets.
    package static let endlessRedirects = redirectChain(hops: .max).named("endlessRedirects")

    /// Row 59: 401 with a Basic challenge (RFC 7617) unless the Authorization field has the given value.
    package static func authorizationRequired(_ value: String) -> Fault {
        Fault("authorizationRequired") { context in
            guard context.request.field("Authorization") != value else { return context.correct }
            return Reply(401, [("WWW-Authenticate", "Basic realm=\"files\"")], text: "authentication required\n")
        }
    }

    /// Row 59: 403 unless the Cookie field contains the pair, such as `id=1`.
    package static func cookieRequired(_ pair: String) -> Fault {
        Fault("cookieRequired") { context in
            guard !has(context, cookie: pair) else { return context.correct }
            return Reply(403, text: "the required cookie is missing\n")
        }
    }

    /// Row 59: a redirect to the same target with a `Set-Cookie` field, such as `seen=yes; Path=/`, unless the
    /// request has the cookie, like consent walls and single sign-on.
    package static func cookieWall(_ cookie: String) -> Fault {
        Fault("cookieWall") { context in
            guard !has(context, cookie: String(cookie.prefix { $0 != ";" })) else { return context.correct }
            return Reply(302, [("Location", context.request.target), ("Set-Cookie", cookie)], text: "say yes\n")
        }
    }

    private static func has(_ context: RequestContext, cookie pair: String) -> Bool {
        let pairs = (context.request.field("Cookie") ?? "").split(separator: ";").map { $0.drop { $0 == " " } }
        return pairs.contains(Substring(pair))
    }

    /// Row 59: 401 with a Digest challenge (RFC 7616), unless the request answers the nonce for its target as the user.
    /// The hash is not checked. `besides` is another challenge in the same response.
    package static func digestRequired(user: String, nonce: String = "n1", besides: String? = nil) -> Fault {
        Fault("digestRequired") { context in
            let answer = context.request.field("Authorization") ?? ""
            let parts = ["username=\"\(user)\"", "nonce=\"\(nonce)\"", "uri=\"\(context.request.target)\""]
            guard !answer.hasPrefix("Digest ") || !parts.allSatisfy({ answer.contains($0) }) else {
                return context.correct
            }
            let challenge = "Digest realm=\"files\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=SHA-256"
            let fields = [besides, challenge].compactMap { $0 }.map { ("WWW-Authenticate", $0) }
            return Reply(401, fields, text: "authentication required\n")
        }
    }

    /// Row 68: 407, like a proxy.
    package static let proxyAuthenticationRequired = status(
        407, fields: [("Proxy-Authenticate", "Basic realm=\"proxy\"")]
    )
    .named("proxyAuthenticationRequired")
}
