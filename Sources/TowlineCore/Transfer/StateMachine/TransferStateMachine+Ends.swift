/// The reactions of a transfer to the end of an attempt, complete or not.
extension TransferStateMachine {
    /// The reason, shown to the user, of a failed request whose response contained too few bytes.
    static let endedEarly = "the server ended the response before all requested bytes arrived"

    /// Removes an attempt that ended, and handles its result: for example, missing bytes are requested again.
    mutating func ended(_ id: AttemptID, _ result: AttemptResult, _ context: TransferContext) -> [TransferAction] {
        guard let attempt = work.remove(id, result, now: context.now) else { return [] }
        // A request that fails confirms nothing.
        if attempt.plan.isConfirmation, !attempt.isAccepted, !attempt.isDismissed { evidence.changes.endClaim() }
        let actions = sources.note(attempt, &evidence, &work)
        return actions + follow(attempt, result, context) + drained()
    }

    private mutating func follow(
        _ attempt: RunningAttempt, _ result: AttemptResult, _ context: TransferContext
    ) -> [TransferAction] {
        if case .sinkFailed(let error) = result {
            let actions = evidence.part.makeRoom(error, phase)
            return actions.isEmpty ? fail(error) : actions + drain(.resume)
        }
        if case .digestDiffers(let start) = result {
            return perform(
                evidence.digests.wrongContent(attempt, from: start, &evidence.part, &sources, &work))
        }
        if attempt.isDismissed || attempt.isDisbelieved { return [] }
        if case .overlapDiffers = result {
            if work.isOfAnotherVersion(attempt, context) {
                let text = "the file on the server differs from the downloaded bytes"
                return perform(patience.giveBack(attempt, ConnectionRefusal(text), &evidence, &sources, &work, context))
            }
            return perform(sources.seamDiffers(attempt, &evidence, &work))
        }
        if case .mirror(let index) = attempt.plan.source {
            return perform(sources.ended(attempt, index, result, evidence, &work, &patience, context))
        }
        switch result {
        case .complete(let framing):
            return perform(patience.completed(attempt, framing, &evidence, &sources, &work, context))
        case .stopped: patience.failures = 0
        case .failed(let failure):
            return perform(patience.failed(attempt, failure, &evidence, &sources, &work, context))
        case .needsOwnConnection: patience.leaveShared(attempt, &evidence, &sources, &work, context.now)
        case .overlapDiffers, .cancelled, .sinkFailed, .digestDiffers: break
        }
        return []
    }
}
