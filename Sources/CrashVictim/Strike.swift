import Glibc

/// What happens to one call of the run, or to each from one on.
struct Strike: Sendable {
    /// What happens.
    enum Kind: String, CaseIterable, Sendable {
        /// Nothing; calls are counted only.
        case none
        /// SIGKILL before the call is made.
        case kill
        /// SIGKILL when the call took about half of its bytes, up to the end of a page; one that takes none is made.
        case killHalfway
        /// The call fails with ENOSPC.
        case full
        /// The call fails with EIO.
        case failure
        /// The call fails with EINTR.
        case interrupted
        /// The call takes or gives half of the bytes.
        case short
        /// This call and all later ones fail with EIO.
        case failureFromThenOn

        /// Whether it ends the process.
        var kills: Bool { self == .kill || self == .killHalfway }
    }

    /// What becomes of one call.
    enum Outcome {
        case plain
        case error(Int32)
        case half
        case halfThenKill
    }

    var kind = Kind.none
    /// The number of the call; the first is 0. Strikes that kill count the calls that change a file or a
    /// directory alone, the others count all.
    var number = 0

    /// What becomes of the call with this number.
    func outcome(of number: Int) -> Outcome {
        switch kind {
        case .failureFromThenOn where number >= self.number: return .error(EIO)
        case _ where number != self.number: return .plain
        case .none, .failureFromThenOn: return .plain
        case .kill: Self.killProcess()
        case .killHalfway: return .halfThenKill
        case .full: return .error(ENOSPC)
        case .failure: return .error(EIO)
        case .interrupted: return .error(EINTR)
        case .short: return .half
        }
    }

    /// Ends the process as SIGKILL does.
    static func killProcess() -> Never {
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}
