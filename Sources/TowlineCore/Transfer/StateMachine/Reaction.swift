/// The actions with which a part of a transfer's state machine reacts to an event, and the step that follows them.
struct Reaction: ExpressibleByArrayLiteral {
    var actions: [TransferAction]
    /// The step that follows the actions; `nil` if no step follows.
    var next: Next?

    /// A step after the actions of a reaction that concerns the whole transfer, such as a restart. Only the state
    /// machine performs it.
    enum Next {
        /// More bytes are downloaded, although all were written, because some of them were discarded.
        case downloadMore
        /// The part file is created for the body of the response to this attempt; `nil`: for an empty file.
        case prepare(AttemptID?)
        /// All attempts end, and the given step follows.
        case drain(TransferGoal)
        /// The download begins again at the first byte.
        case startOver(Restart)
        /// The request counts as failed, because its response is not the file. The next one follows after a wait.
        case retry(AttemptPlan, TransferPatience.Failure)
        /// Another request, after a wait, has to repeat what the response shows. `reason` is shown to the user.
        case confirm(reason: String)
        /// The primary source is no longer used because of this error.
        case primaryFailed(TowlineError)
        /// No source (URL) of the file is left, so the transfer fails, unless an earlier response can be the file.
        case sourcesFailed(TowlineError)
        case fail(TowlineError)
        /// The transfer fails because of a checksum, and the wrong file is kept under another name.
        case failAside(TowlineError)
    }

    init(_ actions: [TransferAction] = [], _ next: Next? = nil) { (self.actions, self.next) = (actions, next) }

    init(arrayLiteral actions: TransferAction...) { self.init(actions) }

    static func + (actions: [TransferAction], reaction: Reaction) -> Reaction {
        Reaction(actions + reaction.actions, reaction.next)
    }
}

/// A restart of a download at the first byte.
struct Restart {
    /// The reason for the restart, shown to the user in a notice.
    var reason: String
    /// `true` if the file changed on the server. The user may have forbidden a restart in this case.
    var isChange = false
    /// An attempt whose paused response is the complete new file; `nil` if a new request is sent.
    var keeper: AttemptID?
    /// `true` if the next request waits after restarts in a row, because the server made the responses useless.
    var waits = false
    /// `true` if some of the written bytes are wrong or lost, so that they are not kept.
    var areBytesWrong = false

    /// The fate of the part file.
    var replacement: HeldPart.Replacement { areBytesWrong ? .removed : isChange ? .keptForReturn : .kept }

    /// Returns the notice for the user. `held`: the number of written bytes.
    func notice(over held: Int64) -> TransferNotice {
        let fate = areBytesWrong ? "discarded" : "kept until the new download has as many or is complete"
        let isSmall = held == 0 || !areBytesWrong && held < StartOverReason.worthSaying
        let end = isSmall ? "" : ". The \(ByteCountText.format(held)) downloaded so far are \(fate)"
        return TransferNotice(.warning, .restarted, "restarting from the beginning: \(reason)\(end)")
    }
}
