internal import TowlineCore

/// The batch slot (the right to run in a batch) of one download, which lends the slot to other downloads while it only
/// waits.
struct BatchTurn {
    private let services: TransferServices
    /// The slot of the download: its right to run in a batch; `nil` outside a batch.
    private let slot: BatchSlots.Slot?
    /// The download's entry in the list of a batch; `nil` outside a batch.
    private let item: BatchRoster.Item?
    /// `true` while this download lends its slot (right to run) to others, until its next HTTP request.
    private var isResting = false
    /// The time at which a request was sent while no other ran; `nil` after a response. If none comes for long, the
    /// host counts as silent.
    private var unansweredSince: Duration?
    /// The number of responses that the host had given to any download of this process at the time `unansweredSince`.
    private var answersBefore = 0
    /// `true` after the first request was cancelled because the host responded to other downloads and not to this one.
    /// That is done only once.
    private var hasYielded = false

    /// The description of a response that must wait until all earlier downloads of the batch have their file names;
    /// `nil` if none waits.
    var waitingForName: PreparePlan?

    init(_ services: TransferServices, slot: BatchSlots.Slot?, item: BatchRoster.Item?) {
        (self.services, self.slot, self.item) = (services, slot, item)
    }

    /// The state of a transfer that decides whether it needs its batch slot (the right to run in a batch) now.
    struct Situation {
        /// The host of the first running HTTP request or, if none runs, of the next one.
        var origin: HTTPURL.Origin
        /// `true` while an HTTP request of the transfer runs.
        var hasAttempts: Bool
        /// `true` if all running responses of the transfer are silent and are not cut.
        var awaitsSilentServer: Bool
        /// `true` if a host has permitted this transfer connections of its own, whose number is limited
        /// (`HostBoard.admit`).
        var isAdmitted: Bool
        /// `true` while the transfer waits for its batch slot, or for permission to open a connection to a host.
        var waitsForTurn: Bool
        /// The remaining time before the next HTTP request, for example before a retry; `nil` if the transfer does not
        /// wait.
        var wait: Duration?
        /// `true` if the server asked the transfer to wait, for example with Retry-After.
        var waitsForServer: Bool
    }

    /// Lends the slot (right to run) to other downloads while this one waits for its next request, or while its host
    /// does not respond. Takes the slot back when the response comes.
    ///
    /// - Returns: `true` if the transfer waits and needs no connection meanwhile.
    mutating func rest(_ situation: @autoclosure () -> Situation) -> Bool {
        guard let slot else { return false }
        let now = situation()
        defer { if isResting, let item { services.names?.decided(item.number) } }
        guard !now.hasAttempts, !now.waitsForTurn else {
            restWhileSilent(slot, now)
            return false
        }
        guard !isResting, let wait = now.wait else { return false }
        // A silent host does not indicate that the network is down for all downloads.
        isResting = slot.rest(for: wait, isAsked: now.waitsForServer || slot.isSilent(now.origin))
        return isResting
    }

    private mutating func restWhileSilent(_ slot: BatchSlots.Slot, _ now: Situation) {
        if let sent = unansweredSince, services.now - sent >= Self.silence, slot.isUnknown(now.origin) {
            slot.note(silence: true, of: now.origin)
        }
        let isCrowdedOut = !now.hasAttempts && !now.isAdmitted && services.board.isFull(now.origin)
        let isSilent =
            (unansweredSince != nil || !now.hasAttempts) && slot.isSilent(now.origin) || isCrowdedOut
            || now.awaitsSilentServer
        if isResting, !isSilent, now.hasAttempts {
            isResting = !slot.takeBack(anyway: true)
        } else if !isResting, isSilent {
            isResting = slot.rest(
                for: TickPolicy.patience, isAsked: true, hasResponse: now.awaitsSilentServer)
        }
    }

    /// The time without a response after which a host that has never responded counts as one that does not respond.
    /// Over a satellite, the connection and the response take more than a second.
    private static let silence = Duration.milliseconds(1500)

    /// The minimum number of responses to other downloads, and the time without a response to this download, after
    /// which the host is assumed to serve one request at a time.
    private static let othersServed = 1, kept = Duration.seconds(5)

    /// Returns whether to cancel the first request of this download, once, because its host responds to other downloads
    /// and not to this one: some servers serve one connection at a time. The download then waits until others have
    /// ended.
    ///
    /// - Parameters:
    ///   - writers: the receivers of the responses of the running requests.
    ///   - host: the host that has permitted this transfer connections of its own.
    mutating func yieldsToOthers(_ writers: [AttemptWriter], admittedTo host: HTTPURL.Origin?) -> Bool {
        guard slot != nil, !hasYielded, let sent = unansweredSince, services.now - sent >= Self.kept,
            writers.count == 1, let plan = writers.first?.plan, plan.sharing == .none, host == plan.url.origin,
            services.board.answers(of: plan.url.origin) - answersBefore >= Self.othersServed
        else { return false }
        hasYielded = true
        services.board.kept(plan.url.origin)
        return true
    }

    /// Takes the lent slot (right to run) back for the next HTTP request. Returns whether that request may be sent: the
    /// download has its slot, or its host does not respond anyway.
    mutating func takeBack(_ situation: @autoclosure () -> Situation) -> Bool {
        guard isResting, let slot else { return true }
        let now = situation()
        if let wait = now.wait, wait > .zero { return false }
        if slot.isSilent(now.origin) { return true }
        if !now.hasAttempts, !now.isAdmitted, services.board.isFull(now.origin) { return false }
        isResting = !slot.takeBack()
        return !isResting
    }

    // MARK: Silent hosts

    /// Records the time of a request that is sent while no other of this download runs, and the number of earlier
    /// responses of its host.
    mutating func noteRequest(at time: Duration, answersBefore: Int) {
        (unansweredSince, self.answersBefore) = (time, answersBefore)
    }

    /// Records that the host of a request responded, so that it no longer counts as silent. `writer`: the receiver of
    /// the response.
    mutating func noteResponse(of writer: AttemptWriter?) {
        unansweredSince = nil
        guard let slot, let writer else { return }
        slot.note(silence: false, of: writer.plan.url.origin)
    }

    /// Records that the host of a request does not respond, if `result` says that the request failed without a
    /// response. `writer`: its receiver.
    func noteSilence(of writer: AttemptWriter?, _ result: AttemptResult) {
        guard let slot, unansweredSince != nil, let writer, case .failed(let failure) = result else { return }
        switch failure.kind {
        case .hostNotFound, .connectFailed, .connectTimedOut, .tlsFailed, .closedBeforeHead, .headTimedOut:
            let origin = writer.plan.url.origin
            // A host that serves others is not silent.
            if services.board.refused(origin) { return }
            slot.note(silence: true, of: origin)
        default: break
        }
    }
}
