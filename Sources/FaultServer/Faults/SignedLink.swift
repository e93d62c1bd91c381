import Synchronization

/// A link whose target expires (rows 41, 49): one resource redirects to a signed target, the other serves targets
/// whose signature is still good and answers 403 to the rest.
package final class SignedLink: Sendable {
    private struct State {
        var good = 0
        var usesLeft: Int?
    }

    private let state = Mutex(State())
    private let uses: Int?
    private let target: String

    /// A link to `target`. Each signature is good for that many requests, or until ``expire()``.
    package init(to target: String, uses: Int? = nil) {
        self.target = target
        self.uses = uses
        state.withLock { $0.usesLeft = uses }
    }

    /// Makes the signature that is good now bad. The next redirect carries a new one.
    package func expire() { state.withLock { $0.good += 1 } }

    /// For the first URL: a redirect to the signed target.
    package var entrance: Behaviour {
        Behaviour { _ in Reply(302, [("Location", "\(self.target)?signature=\(self.renewed())")], text: "moved\n") }
    }

    /// For the target: the correct reply to a good signature, 403 to any other.
    package var exit: Behaviour {
        Behaviour { context in
            self.admits(context.request.query) ? context.correct : Reply(403, text: "the link has expired\n")
        }
    }

    private func renewed() -> Int {
        state.withLock { state in
            if state.usesLeft == 0 { state.good += 1 }
            state.usesLeft = uses
            return state.good
        }
    }

    private func admits(_ query: String?) -> Bool {
        state.withLock { state in
            guard query == "signature=\(state.good)", state.usesLeft != 0 else { return false }
            state.usesLeft = state.usesLeft.map { $0 - 1 }
            return true
        }
    }
}
