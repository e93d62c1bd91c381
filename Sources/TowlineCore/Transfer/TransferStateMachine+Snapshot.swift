/// The state of the transfer, for display.
extension TransferStateMachine {
    /// Returns the state and progress at the time `now`, and updates the estimate of the remaining time.
    package mutating func snapshot(now: Duration) -> TransferSnapshot {
        var snapshot = TransferSnapshot()
        snapshot.name = fileName.isEmpty ? nil : fileName
        snapshot.completeLength = ledger.completeLength
        snapshot.heldBytes = ledger.written.count
        snapshot.resumedBytes = resumedBytes
        snapshot.receivedBytes = receivedBytes
        snapshot.connections = liveCount
        snapshot.sharing = sharing
        snapshot.startsOverBecause = startsOverBecause
        snapshot.state = state(now)
        if case .downloading = snapshot.state {
            snapshot.rate = estimator.rate
            if let length = ledger.completeLength {
                let missing = length - snapshot.heldBytes
                snapshot.remaining = remainingTime.estimate(missing: missing, rate: estimator.rate, now: now)
            }
        }
        if let remaining = wait(now: now) {
            snapshot.wait = TransferSnapshot.Wait(remaining: remaining, reason: waitReason)
        }
        return snapshot
    }

    /// Returns the time until the next attempt; `nil` unless the transfer waits for it.
    package func wait(now: Duration) -> Duration? {
        guard case .waiting = state(now) else { return nil }
        return max(.zero, (nextTry ?? now) - now)
    }

    /// The maximum time without a running response, as between two segments, that still counts as downloading.
    private static let moment = Duration.seconds(1)

    private func state(_ now: Duration) -> DownloadState {
        switch phase {
        case .idle: return .queued
        case .draining where attempts.contains(where: \.isAccepted): return .downloading
        case .running, .preparing, .draining:
            if attempts.contains(where: { $0.isAccepted && !$0.isDismissed }) { return .downloading }
            if waitsForTurn { return .queued }
            if liveCount == 0, case .running = phase { return .waiting(waitsForServer ? .server : .retry) }
            return lastReceivedAt.map { now - $0 < Self.moment } ?? false ? .downloading : .connecting
        case .verifying: return .verifying
        case .publishing: return .publishing
        case .ended:
            switch ending {
            case .failed: return .failed
            case .stopped: return .paused
            case .finished, .upToDate, nil: return .finished
            }
        }
    }

    /// The written bytes, and the segments (byte ranges of attempts) that are being downloaded.
    package var segmentMap: SegmentMap {
        let running = live.filter(\.isAccepted)
        return SegmentMap(
            completeLength: ledger.completeLength, written: ledger.written,
            segments: running.map { attempt in
                SegmentMap.Segment(
                    range: ledger.lease(of: attempt.plan.id) ?? attempt.plan.lease, position: attempt.position,
                    rate: attempt.estimator.rate)
            })
    }

    /// `true` if a download with several connections will soon be done. Ticks must then be frequent: a connection that
    /// stalls now delays the whole file.
    package var endsSoon: Bool {
        guard phase == .running, isConfirmed, !isSingle, let length = ledger.completeLength, let rate = estimator.rate
        else { return false }
        return Double(length - ledger.written.count) < rate * TickPolicy.end
    }

    /// `true` if so many bytes are missing that regular ticks should start at once.
    package var isLong: Bool {
        guard phase == .running, isConfirmed, !isSingle, let length = ledger.completeLength else { return false }
        return length - ledger.written.count >= TickPolicy.long
    }

    /// The time at which the state machine needs a `tick` before the next regular one; `nil` if the regular one
    /// suffices.
    package var wakeAt: Duration? {
        guard phase == .running else { return nil }
        guard liveCount > 0 else { return nextTry }
        return [budget.wakeAt, firstLookAt.flatMap { $0 > now ? $0 : nil }].compactMap(\.self).min()
    }
}

/// Values that the runner reads occasionally. The values that it reads in each step are stored properties: a call on a
/// machine that is part of a class copies the whole machine first.
extension TransferStateMachine {
    /// The bytes that can be read now, and the length and validator of their file.
    package var content: TransferContent {
        TransferContent(
            generation: contentGeneration, completeLength: ledger.completeLength, written: ledger.written,
            strongValidator: representation?.strongValidator, isBegun: isConfirmed || !ledger.written.isEmpty)
    }
}
