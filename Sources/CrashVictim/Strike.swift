import Glibc

/// A fault of one system call of the run, or of all calls from that call on.
struct Strike: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        /// No fault; calls are only counted.
        case none
        /// SIGKILL before the call.
        case kill
        /// SIGKILL after about half of the call's bytes, up to the end of a page, or after a call without bytes.
        case killHalfway
        /// The call fails with ENOSPC.
        case full
        /// The call fails with EIO.
        case failure
        /// The call fails with EINTR.
        case interrupted
        /// The call reads or writes half of the bytes.
        case short
        /// This call and every later call fail with EIO.
        case failureFromThenOn

        /// `true` if the fault kills the process.
        var kills: Bool { self == .kill || self == .killHalfway }
    }

    /// The treatment of a call.
    enum Outcome {
        case plain
        case error(Int32)
        case half
        case halfThenKill
    }

    var kind = Kind.none
    /// The number of the call; the first is 0. Faults that kill count only the calls that change a file or a directory.
    /// Other faults count every call.
    var number = 0

    /// Returns the treatment of the call with this number. Does not return if the process must be killed before the
    /// call.
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

    static func killProcess() -> Never {
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}
