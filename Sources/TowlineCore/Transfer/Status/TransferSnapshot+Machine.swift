extension TransferSnapshot {
    /// Creates the snapshot of a transfer at the time `now`, and updates the estimate of the remaining time.
    package init(of machine: inout TransferStateMachine, now: Duration) {
        self.init()
        let (evidence, ledger) = (machine.evidence, machine.work.ledger)
        name = evidence.fileName.isEmpty ? nil : evidence.fileName
        completeLength = ledger.completeLength
        heldBytes = ledger.written.count
        resumedBytes = evidence.part.resumedBytes
        receivedBytes = machine.work.pace.receivedBytes
        connections = machine.work.liveCount
        sharing = machine.work.sharing
        startsOverBecause = evidence.startsOverBecause
        state = DownloadState(of: machine, now: now)
        if case .downloading = state {
            rate = machine.work.pace.estimator.rate
            if let length = completeLength {
                remaining = machine.work.pace.remainingTime.estimate(
                    missing: length - heldBytes, rate: rate, now: now)
            }
        }
        wait = machine.wait(now: now).map { remaining in
            let patience = machine.patience
            return Wait(remaining: remaining, reason: patience.waitReason, lacksNetwork: patience.lacksNetwork)
        }
    }
}

extension DownloadState {
    /// The maximum time without a running response, as between two segments, that still counts as downloading.
    private static let moment = Duration.seconds(1)

    /// Creates the state that is shown for a transfer at the time `now`.
    init(of machine: TransferStateMachine, now: Duration) {
        let work = machine.work
        switch machine.phase {
        case .idle: self = .queued
        case .draining where work.attempts.contains(where: \.isAccepted): self = .downloading
        case .running, .preparing, .draining:
            if machine.awaitsSilentServer {
                self = .waiting(.server)
            } else if work.attempts.contains(where: { $0.isAccepted && !$0.isDismissed }) {
                self = .downloading
            } else if work.waitsForTurn {
                self = .queued
            } else if work.liveCount == 0, case .running = machine.phase {
                self = .waiting(machine.patience.waitsForServer ? .server : .retry)
            } else {
                self = work.pace.lastReceivedAt.map { now - $0 < Self.moment } ?? false ? .downloading : .connecting
            }
        case .verifying: self = .verifying
        case .publishing: self = .publishing
        case .ended:
            switch machine.ending {
            case .failed: self = .failed
            case .stopped: self = .paused
            case .finished, .upToDate, nil: self = .finished
            }
        }
    }
}

extension DownloadSegments {
    /// Creates the byte ranges of a transfer: its written bytes, and the segments (byte ranges of requests) in
    /// progress.
    package init(of machine: TransferStateMachine) {
        let ledger = machine.work.ledger
        self.init(
            completeLength: ledger.completeLength, written: ledger.written,
            segments: machine.work.live.filter(\.isAccepted).map { attempt in
                let lease = ledger.lease(of: attempt.id) ?? attempt.plan.lease
                let isOpen = lease.upperBound == .max
                let end = isOpen ? max(attempt.position, ledger.completeLength ?? 0) : lease.upperBound
                let start = min(lease.lowerBound, end)
                return Segment(
                    range: start..<end, position: min(max(attempt.position, start), end),
                    rate: attempt.rates.average.rate)
            })
    }
}

extension TransferContent {
    /// Creates the description of the bytes of a transfer that can be read now.
    package init(of machine: TransferStateMachine) {
        let (evidence, ledger) = (machine.evidence, machine.work.ledger)
        generation = evidence.part.generation
        completeLength = ledger.completeLength
        written = ledger.written
        strongValidator = evidence.representation?.strongValidator
        isBegun = evidence.isConfirmed || !ledger.written.isEmpty
    }
}
