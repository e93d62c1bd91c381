/// Statuses that carry no bytes of the file. Their bodies are never written to the part file.
extension ResponseEvaluator {
    static func judgeRefusal(_ facts: ResponseFacts, _ question: ResponseQuestion) -> ResponseVerdict {
        let status = facts.status
        switch status {
        case 408, 425, 500, 502, 504, 520...527:
            return .transient(
                reason: "the server failed (\(status))", retryAfter: facts.retryAfter, overloaded: false,
                status: status)
        case 429, 503:
            return .transient(
                reason: status == 429 ? "too many requests (429)" : "the server is busy (503)",
                retryAfter: facts.retryAfter, overloaded: true, status: status)
        case 400, 501:
            if case .whole = question.asked { break }
            if question.known == nil {
                return .askWithoutRange(reason: "the server refuses a range request (\(status))")
            }
        case 401, 403, 404, 410:
            let error = refusal(status, question)
            return question.workedBefore ? .linkExpired(status: status, error) : .permanent(error)
        case 412:
            return .changed(reason: "the server says that a precondition failed (412)", whole: nil)
        default: break
        }
        if (201..<300).contains(status) {
            return .permanent(
                TowlineError(
                    .invalidResponse, "\(question.source): status \(status) carries no file", status: status))
        }
        return .permanent(refusal(status, question))
    }

    private static func refusal(_ status: Int, _ question: ResponseQuestion) -> TowlineError {
        let source = question.source
        switch status {
        case 401:
            let what = question.sendsUser ? "does not accept these credentials" : "needs a user and a password"
            return TowlineError(.refusedByServer, "\(source): \(what) (401)", status: 401)
        case 403: return TowlineError(.refusedByServer, "\(source): access is forbidden (403)", status: 403)
        case 404: return TowlineError(.notFound, "\(source): no such file on the server (404)", status: 404)
        case 407:
            return TowlineError(.refusedByServer, "\(source): the proxy needs a user and a password (407)", status: 407)
        case 410:
            return TowlineError(.refusedByServer, "\(source): the file is gone from the server (410)", status: 410)
        case 400..<600:
            return TowlineError(.refusedByServer, "\(source): the server refuses (\(status))", status: status)
        default:
            return TowlineError(.invalidResponse, "\(source): status \(status) is none that HTTP knows", status: status)
        }
    }
}
