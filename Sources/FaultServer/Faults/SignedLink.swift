import Synchronization

/// A link whose target expires (rows 41, 49): one resource redirects to a signed target; the other serves targets
/// with a valid signature and answers 403 to other targets.
package final class SignedLink: Sendable {
    /// The number of the valid signature, and the requests that it still allows.
    private struct Signature {
        var good = 0
        var usesLeft: Int?
    }

    private let state = Mutex(Signature())
    private let uses: Int?
    private let target: String

    /// Creates a link to `target`. Each signature is valid for a number of requests, or until ``expire()``.
    package init(to target: String, uses: Int? = nil) {
        self.target = target
        self.uses = uses
        state.withLock { $0.usesLeft = uses }
    }

    /// Invalidates the current signature. The next redirect contains a new one.
    package func expire() { state.withLock { $0.good += 1 } }

    /// The behaviour of the first URL: a redirect to the signed target.
    package var entrance: Behaviour {
        Behaviour { _ in Reply(302, [("Location", "\(self.target)?signature=\(self.renewed())")], text: "moved\n") }
    }

    /// The behaviour of the target: the correct reply for a valid signature, otherwise 403.
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
