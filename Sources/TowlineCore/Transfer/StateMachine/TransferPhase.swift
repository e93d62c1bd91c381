/// The phases of a transfer, which decide how it reacts to events.
package enum TransferPhase: Hashable, Sendable {
    case idle
    /// Attempts run, or the transfer waits before the next one.
    case running
    /// The part file is being created. The response to the given attempt, if any, is paused until then.
    case preparing(AttemptID?)
    /// The transfer waits for all requests to end, except one whose response a restart uses. `TransferGoal` follows.
    case draining(TransferGoal)
    case verifying
    case publishing
    case ended

    /// `true` while the part file is being created.
    var isPreparing: Bool { if case .preparing = self { true } else { false } }
    /// `true` if the lack of the part file is an error. Publishing renames the part file and does its own checks. A
    /// restart or an end discards the part file.
    var needsPart: Bool {
        switch self {
        case .publishing, .draining(.restart), .draining(.end): false
        default: true
        }
    }
}

/// The step that follows when all running attempts of a transfer that is draining have ended.
package enum TransferGoal: Hashable, Sendable {
    /// Every byte is written: the file is verified and published.
    case finish
    /// The download restarts at the first byte. The response to attempt `keeper`, if any, is the complete new file.
    case restart(keeper: AttemptID?)
    /// The transfer continues with the bytes that a failed sync did not lose.
    case resume
    /// The transfer continues with the bytes of the version that was replaced last, in the part file that is still
    /// open (`isOpen`) or in the earlier one.
    case resumeEarlier(isOpen: Bool)
    case end(TransferEnding)
}
