/// The rules of `ResponseEvaluator` for responses whose status means that the body is not the file, such as 404 or 503.
/// Their bodies are never written to the part file.
extension ResponseEvaluator {
    /// Returns the verdict on a response whose body is not the file: the request is retried or changed, the link has
    /// expired, or the download fails.
    static func judgeRefusal(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        let status = facts.status
        if let verdict = judgeLater(facts, question) { return verdict }
        if question.workedBefore, mayMeanExpired(status) {
            return .linkExpired(status: status, refusal(status, question))
        }
        switch status {
        case 400, 501:
            if case .whole = question.asked { break }
            if question.known == nil {
                return .askWithoutRange(reason: rangeRequestRefused(status))
            }
        case 412 where question.condition != nil:
            return .conditionRefused(reason: "the server refused a conditional request (412)")
        // Other plain requests have no condition. The response to a plain request shows if the file changed.
        case 412 where question.asked != .whole: return .askWithoutRange(reason: rangeRequestRefused(status))
        default: break
        }
        if (201..<300).contains(status) {
            // The URL had the file before.
            if question.known != nil {
                let reason = "the server sent no file (status \(status))"
                return .transient(reason: reason, retryAfter: facts.retryAfter, overloaded: false, status: status)
            }
            return .permanent(
                TowlineError(
                    .invalidResponse,
                    "\(question.source): invalid response: the server sent no file"
                        + " (expected status 200 or 206, got \(status))",
                    status: status))
        }
        return .permanent(refusal(status, question))
    }

    /// Returns whether a status of a URL that worked before may mean that its link has expired: stores send 400, and
    /// frameworks 419, 440 or 498. 407 is about the proxy, 412 and 416 are about the condition and the range.
    private static func mayMeanExpired(_ status: Int) -> Bool {
        (400..<500).contains(status) && ![407, 412, 416].contains(status)
    }

    /// Returns the verdict `transient` (the request is retried) for statuses that mean "later"; `nil` for other
    /// statuses.
    private static func judgeLater(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict? {
        let status = facts.status
        let reason: String
        switch status {
        case 429: reason = "the server temporarily refused the request (429: too many requests)"
        case 503: reason = "the server is temporarily unavailable (503)"
        case 509: reason = "the server reached its bandwidth limit (509)"
        case 529: reason = "the server is overloaded (529)"
        case 511:
            reason =
                "the network requires a login before it allows access (511, captive portal)."
                + " Log in with a web browser"
        case 408, 425, 500, 502, 504, 507, 520...539, 598, 599:
            reason = "the server reported a temporary error (\(status))"
        case _ where question.retryStatuses.contains(status):
            reason = "the server sent \(Remedy.retriedStatus) (\(status))"
        // A response without the file but with Retry-After means "later" (RFC 9110 §10.2.3): a tape archive sends 202.
        case 202 where facts.retryAfter != nil:
            reason = "the server prepares the file and asks to wait (202)"
        case 403 where facts.retryAfter != nil:
            reason = "the server temporarily refused access to the file (403)"
        default: return nil
        }
        let isOverloaded = [429, 503, 509, 529].contains(status)
        return .transient(reason: reason, retryAfter: facts.retryAfter, overloaded: isOverloaded, status: status)
    }

    private static func refusal(_ status: Int, _ question: ResponseQuestion) -> TowlineError {
        let source = question.source
        switch status {
        case 401:
            let what =
                question.sendsUser
                ? "the server rejected the user name, password or token (401). Correct them and try again"
                : "the server requires a login (401). \(Remedy.login.sentence)"
            return TowlineError(.refusedByServer, "\(source): \(what)", status: 401)
        case 403:
            let what = "the server refused access to the file (403). Check that the link is valid and has not expired"
            return TowlineError(.refusedByServer, "\(source): \(what)", status: 403)
        case 404:
            let what = "file not found on the server (404). Check the URL"
            return TowlineError(.notFound, "\(source): \(what)", status: 404)
        case 407:
            let what =
                "the proxy requires a valid user name and password (407)."
                + " \(Remedy.proxyLogin.sentence): http://USER:PASSWORD@HOST:PORT"
            return TowlineError(.refusedByServer, "\(source): \(what)", status: 407)
        case 410:
            let what = "the file was permanently removed from the server (410). Use another URL"
            return TowlineError(.refusedByServer, "\(source): \(what)", status: 410)
        case 400..<600:
            let what = "the server refused the request (HTTP status \(status)). Check the URL, or try again later"
            return TowlineError(.refusedByServer, "\(source): \(what)", status: status)
        default:
            let what = "invalid response: the server sent the status \(status), which does not exist in HTTP"
            return TowlineError(.invalidResponse, "\(source): \(what)", status: status)
        }
    }
}
