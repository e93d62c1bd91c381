/// The attempts that run.
extension TransferStateMachine {
    /// An attempt under way.
    struct Attempt: OfAttempt, Sendable {
        var plan: AttemptPlan
        var id: AttemptID { plan.id }
        let startedAt: Duration
        var isAccepted: Bool { acceptedAt != nil }
        var acceptedAt: Duration?
        /// The offset at which its response ends or is stopped. Its lease may end earlier, if other connections are to
        /// take over the rest.
        var bound: Int64
        /// The offset at which it waits; `.max`: none.
        var heldAt = Int64.max
        /// Until when it may wait there, and whether it may wait longer.
        var holdUntil = Duration.zero, isHeldLonger = false
        /// Bytes of it are written: from here on it is no experiment.
        var hasDelivered = false
        /// The field that has the checksum of its content.
        var digestField: String?
        /// Cancelled by us, or its answer refused: what it still brings does not count as failure.
        var isDismissed = false
        /// How far it was then: it may go on writing until it hears of that.
        var dismissedAt: Int64?
        /// What it wrote must not be believed.
        var isDisbelieved = false
        /// Of the bytes that its first ones are compared with some were given up since it was asked.
        var hasLostItsSeam = false
        var position: Int64
        var received: Int64 = 0
        var lastProgressAt: Duration
        var estimator = ThroughputEstimator(timeConstant: .seconds(2))
        /// The same of the last moments: a young connection becomes faster all the time, and is done sooner than its past says.
        var recent = ThroughputEstimator(timeConstant: .milliseconds(600))
        /// The highest rate it had.
        var bestRate = 0.0
        /// Since when it is far below what may be expected.
        var slowSince: Duration?

        init(plan: AttemptPlan, startedAt: Duration, lastProgressAt: Duration) {
            self.plan = plan
            self.startedAt = startedAt
            self.lastProgressAt = lastProgressAt
            position = plan.lease.lowerBound
            bound = plan.lease.upperBound
        }

        /// What a look at an attempt's progress finds.
        struct Step {
            /// Bytes that came since the last look.
            var bytes: Int64
            /// Some were written.
            var hasWritten = false
            /// Everything from the lease's start to here is written; `nil`: it says nothing that may be believed.
            var claims: Int64?
        }

        /// What it has still to receive. What came and is not written yet, up to a whole small file, nobody else need fetch.
        func notArrived(of range: ByteRange) -> ByteRange {
            let next = plan.lease.lowerBound - plan.overlap + received
            return ByteRange(min(max(range.lowerBound, next), range.upperBound), range.upperBound)
        }

        /// Takes over how far it is; `nil`: that is no news.
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

    /// Attempts that are wanted.
    var live: [Attempt] { attempts.filter { !$0.isDismissed } }
    /// How many those are.
    var liveCount: Int { attempts.count { !$0.isDismissed } }

    /// How many attempts bring bytes, `other` not counted. One that has brought none for a while proves nothing of the
    /// server's limits, nor do any once none has brought a new byte for a stall timeout, whatever heads and overlaps come.
    func workingCount(_ context: TransferContext, besides other: AttemptID? = nil) -> Int {
        guard !isBarren(context) else { return 0 }
        return attempts.count { isWorking($0, context) && $0.id != other }
    }

    /// The same of the primary's alone: what they bring says nothing of other servers, and theirs nothing of it.
    func workingAtPrimary(_ context: TransferContext, besides other: AttemptID? = nil) -> Int {
        guard !isBarren(context) else { return 0 }
        return attempts.count { isWorking($0, context) && $0.id != other && $0.plan.source == .primary }
    }

    private func isWorking(_ attempt: Attempt, _ context: TransferContext) -> Bool { isWorking(attempt, context.now) }

    func isWorking(_ attempt: Attempt, _ now: Duration) -> Bool {
        !attempt.isDismissed && attempt.isAccepted && now - attempt.lastProgressAt < .seconds(3)
    }

    /// The host of the primary's that gives it bytes, if one does.
    package func worksAt(now: Duration) -> HTTPURL.Origin? {
        attempts.first { isWorking($0, now) && $0.plan.source == .primary }?.plan.url.origin
    }
}
