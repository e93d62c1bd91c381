internal import TowlineCore

/// The batch slot (the right to run in a batch) of a download that waits: it lends the slot to other downloads.
extension TransferRun {
    /// Lends the slot to other downloads while this one waits for its next attempt, or while a silent host does not
    /// respond. Takes the slot back when the response comes.
    func rest() {
        guard let batchSlot else { return }
        yieldToOthers()
        defer { if isResting, let item { services.names?.decided(item.number) } }
        let now = services.now
        guard writers.isEmpty, !machine.waitsForTurn else {
            let origin = writers.first?.plan.url.origin ?? machine.nextOrigin
            if let sent = unansweredSince, now - sent >= Self.silence, batchSlot.isUnknown(origin) {
                batchSlot.note(silence: true, of: origin)
            }
            let isCrowdedOut = writers.isEmpty && admission == nil && services.board.isFull(origin)
            let isSilent = (unansweredSince != nil || writers.isEmpty) && batchSlot.isSilent(origin) || isCrowdedOut
            if isResting, !isSilent, !writers.isEmpty {
                isResting = !batchSlot.takeBack(anyway: true)
            } else if !isResting, isSilent {
                isResting = batchSlot.rest(for: TickPolicy.patience, isAsked: true)
            }
            return
        }
        guard !isResting, let wait = machine.wait(now: now) else { return }
        // A silent host does not indicate that the network is down for all downloads.
        let isAsked = machine.waitsForServer || batchSlot.isSilent(machine.nextOrigin)
        isResting = batchSlot.rest(for: wait, isAsked: isAsked)
        if isResting { giveUpAdmission() }
    }

    /// The time without a response after which a host that has never responded counts as silent. Over a satellite, the
    /// connection and the response take more than a second.
    private static let silence = Duration.milliseconds(1500)

    /// The number of responses to other downloads, and the waiting time, after which a host that has not responded to
    /// this download counts as serving one request at a time.
    private static let othersServed = 1, kept = Duration.seconds(5)

    /// Cancels the first request of this download once if its host responds to other downloads and not to this one:
    /// some servers serve one connection at a time. The download then waits until the host has room.
    private func yieldToOthers() {
        guard !hasYielded, let sent = unansweredSince, services.now - sent >= Self.kept, writers.count == 1,
            let plan = writers.first?.plan, plan.sharing == .none, admission == plan.url.origin,
            services.board.answers(of: plan.url.origin) - answersBefore >= Self.othersServed
        else { return }
        hasYielded = true
        services.board.kept(plan.url.origin)
        giveUpAdmission()
        services.transport.cancel(plan.id)
    }

    /// Records the time of a request that is sent while no other runs, and the number of earlier responses of its host.
    func noteRequest(at time: Duration, answersBefore: Int) {
        unansweredSince = time
        self.answersBefore = answersBefore
    }

    /// Takes the slot back for the next attempt. Returns whether that attempt may begin: the download has its slot, or
    /// the host is silent, so that the attempt needs no slot.
    func takeBackSlot() -> Bool {
        guard isResting, let batchSlot else { return true }
        if let wait = machine.wait(now: services.now), wait > .zero { return false }
        let origin = writers.first?.plan.url.origin ?? machine.nextOrigin
        if batchSlot.isSilent(origin) { return true }
        if writers.isEmpty, admission == nil, services.board.isFull(origin) { return false }
        isResting = !batchSlot.takeBack()
        return !isResting
    }

    /// Records that the host of an attempt responded, so that it no longer counts as silent.
    func noteAnswer(of id: AttemptID) {
        unansweredSince = nil
        guard let batchSlot, let writer = writer(id) else { return }
        batchSlot.note(silence: false, of: writer.plan.url.origin)
    }

    /// Records that the host of an attempt is silent, if the attempt failed because no response came.
    func noteSilence(of id: AttemptID, _ result: AttemptResult) {
        guard let batchSlot, unansweredSince != nil, let writer = writer(id),
            case .failed(let failure) = result
        else { return }
        switch failure.kind {
        case .hostNotFound, .connectFailed, .connectTimedOut, .tlsFailed, .closedBeforeHead, .headTimedOut:
            let origin = writer.plan.url.origin
            // A host that serves others is not silent.
            if services.board.refused(origin) { return }
            batchSlot.note(silence: true, of: origin)
        default: break
        }
    }
}
