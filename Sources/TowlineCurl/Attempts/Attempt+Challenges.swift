internal import TowlineCore
internal import TowlineEngine

/// The functions of an attempt for the cookies of its response, and for 401 responses that ask for credentials.
extension Attempt {
    /// Updates the download's cookie jar with the cookies of the response, before the receiver can send the next
    /// request.
    func takeBackCookies(_ head: ResponseHead) {
        guard !handle.lentCookies.isEmpty || head.fields.has("Set-Cookie") else { return }
        request.connection.cookies.update(lent: handle.lentCookies, returned: handle.cookies)
    }

    /// Returns whether a head is a 401 response that libcurl will probably answer with the credentials; libcurl decides
    /// after the callback that calls this function. Sets `.needsDigest` if the server offers Digest authentication and
    /// this handle only sends Basic.
    func isChallenge(_ head: ResponseHead) -> Bool {
        guard head.status == 401, pool.options.hasCredentials, !request.fields.has("Authorization") else {
            return false
        }
        let offers = head.fields.values(named: "WWW-Authenticate").map { $0.lowercased() }
        guard pool.options.waitsForChallenge else {
            if offers.contains(where: { $0.contains("digest") }) { challenges = .needsDigest }
            return false
        }
        // A second 401 means that the password is wrong, unless the nonce has expired (RFC 7616 §3.3).
        let isStale = offers.contains { $0.contains("stale=true") || $0.contains("stale=\"true\"") }
        guard case .answered(let count) = challenges, count == 0 || isStale && count < Self.mostChallenges else {
            return false
        }
        challenges = .answered(count + 1)
        return true
    }

    /// The maximum number of 401 responses that an attempt answers, for a server that calls every nonce stale.
    private static let mostChallenges = 3
}
