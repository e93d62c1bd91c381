/// The running attempts.
extension TransferStateMachine {
    /// A running attempt (one request and its response) and its progress.
    struct Attempt: OfAttempt, Sendable {
        var plan: AttemptPlan
        var id: AttemptID { plan.id }
        let startedAt: Duration
        var isAccepted: Bool { acceptedAt != nil }
        var acceptedAt: Duration?
        /// The offset at which the response ends or is stopped. The range assigned to the attempt may end earlier, if
        /// other connections are to take over the rest.
        var bound: Int64
        /// The offset at which the attempt pauses, because another connection may deliver the next bytes; `.max`: no
        /// pause.
        var heldAt = Int64.max
        /// The time until the attempt may pause at `heldAt`, and whether the pause is extended because the next bytes
        /// arrive.
        var holdUntil = Duration.zero, isHeldLonger = false
        /// `true` once bytes of the attempt are written: from then on, another response may be stopped in favor of it.
        var hasDelivered = false
        /// The name of the field with the checksum of the response's content; `nil` if the response has no such field.
        var digestField: String?
        /// `true` if the transfer cancelled the attempt or refused its response: its end does not count as a failure.
        var isDismissed = false
        /// The position at dismissal. The attempt may write more bytes before the cancellation takes effect.
        var dismissedAt: Int64?
        /// `true` if the bytes that the attempt wrote may be wrong or lost. They do not count as written.
        var isDisbelieved = false
        /// `true` if the written bytes with which the attempt compares its first ones were discarded after its request.
        var hasLostItsSeam = false
        var position: Int64
        var received: Int64 = 0
        var lastProgressAt: Duration
        var estimator = ThroughputEstimator(timeConstant: .seconds(2))
        /// The rate in the last moments, in bytes per second. A new connection still accelerates, so it ends sooner
        /// than its average rate predicts.
        var recent = ThroughputEstimator(timeConstant: .milliseconds(600))
        /// The highest rate of the attempt, in bytes per second.
        var bestRate = 0.0
        /// The time since when the rate of the attempt is far below the expected one; `nil` if it is not slow.
        var slowSince: Duration?

        init(plan: AttemptPlan, startedAt: Duration, lastProgressAt: Duration) {
            self.plan = plan
            self.startedAt = startedAt
            self.lastProgressAt = lastProgressAt
            position = plan.lease.lowerBound
            bound = plan.lease.upperBound
        }

        /// The change in an attempt's progress since the previous report.
        struct Step {
            /// The number of bytes received since the previous report.
            var bytes: Int64
            /// `true` if bytes were written.
            var hasWritten = false
            /// The end of the written bytes, which begin at the start of the assigned range; `nil` if they do not count
            /// as written.
            var claims: Int64?
        }

        /// Returns the end of `range` that has not arrived yet. Bytes received but not yet written, up to a whole small
        /// file, need no other request.
        func notArrived(of range: ByteRange) -> ByteRange {
            let next = plan.lease.lowerBound - plan.overlap + received
            return ByteRange(min(max(range.lowerBound, next), range.upperBound), range.upperBound)
        }

        /// Records `progress` and returns the change; `nil` if the progress is older than the recorded one.
        mutating func follow(_ progress: AttemptProgress, now: Duration) -> Step? {
            guard progress.received >= received else { return nil }
            var step = Step(bytes: progress.received - received)
            if progress.isHeldBack { slowSince = nil }
            if progress.isHeldBack || step.bytes > 0 { lastProgressAt = now }
            received = progress.received
            if let position = progress.position {
                step.hasWritten = position > self.position
                self.position = max(position, self.position)
                if isAccepted, !isDisbelieved { step.claims = self.position }
            }
            estimator.add(step.bytes, now: now)
            recent.add(step.bytes, now: now)
            bestRate = max(bestRate, estimator.rate ?? 0)
            return step
        }
    }

    /// The attempts that are not dismissed, that is, neither cancelled nor refused.
    var live: [Attempt] { attempts.filter { !$0.isDismissed } }
    /// The number of attempts that are not dismissed, that is, neither cancelled nor refused.
    var liveCount: Int { attempts.count { !$0.isDismissed } }

    /// Returns the number of attempts that receive bytes, except `other`. An attempt without bytes for three seconds
    /// does not show what the server allows. If no new byte was written for a stall timeout, no attempt counts,
    /// whatever heads and overlaps arrive.
    func workingCount(_ context: TransferContext, besides other: AttemptID? = nil) -> Int {
        guard !hasNoRecentProgress(context) else { return 0 }
        return attempts.count { isWorking($0, context) && $0.id != other }
    }

    /// Returns the number of attempts at the primary source that receive bytes, except `other`; see `workingCount`. The
    /// attempts at one server say nothing about another server.
    func workingAtPrimary(_ context: TransferContext, besides other: AttemptID? = nil) -> Int {
        guard !hasNoRecentProgress(context) else { return 0 }
        return attempts.count { isWorking($0, context) && $0.id != other && $0.plan.source == .primary }
    }

    private func isWorking(_ attempt: Attempt, _ context: TransferContext) -> Bool { isWorking(attempt, context.now) }

    func isWorking(_ attempt: Attempt, _ now: Duration) -> Bool {
        !attempt.isDismissed && attempt.isAccepted && now - attempt.lastProgressAt < .seconds(3)
    }

    /// Returns the host that currently sends bytes for the primary, the source that defines the file; `nil` if no host
    /// does.
    package func activeHost(now: Duration) -> HTTPURL.Origin? {
        attempts.first { isWorking($0, now) && $0.plan.source == .primary }?.plan.url.origin
    }
}
