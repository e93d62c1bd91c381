/// A running attempt of a transfer and its progress.
struct RunningAttempt: OfAttempt, Sendable {
    /// The request of the attempt, and the bytes to write.
    var plan: AttemptPlan
    var id: AttemptID { plan.id }
    /// The time when the request was started.
    let startedAt: Duration
    var isAccepted: Bool { acceptedAt != nil }
    /// The time when the head of the response was accepted; `nil` before.
    var acceptedAt: Duration?
    /// The offset at which the response ends or is stopped. The range assigned to the attempt may end earlier, if other
    /// connections are to take over the rest.
    var bound: Int64
    var pause = Pause()
    /// `true` once bytes of the attempt are written: from then on, another response may be stopped in favor of it.
    var hasDelivered = false
    /// The name of the field with the checksum of the response's content; `nil` if the response has no such field.
    var digestField: String?
    /// `true` if the transfer cancelled the attempt or refused its response: its end does not count as a failure.
    var isDismissed = false
    /// The end of the written bytes when the attempt was cancelled or refused. The attempt may write more bytes before
    /// the cancellation takes effect.
    var dismissedAt: Int64?
    /// `true` if the bytes that the attempt wrote may be wrong or lost. They do not count as written.
    var isDisbelieved = false
    /// `true` if the written bytes that the attempt compares with its first bytes were discarded after its request.
    var hasLostItsSeam = false
    /// The end of the bytes that the attempt has written, without a gap from the start of its assigned range.
    var position: Int64
    /// The number of body bytes received, including bytes that were requested again for comparison.
    var received: Int64 = 0
    /// The time of the last received byte or other progress, such as the response head. A stall is measured from it.
    var lastProgressAt: Duration
    var rates = Rates()

    /// The pause of a running response before bytes that another connection may deliver.
    struct Pause {
        /// The offset at which the response pauses; `.max`: no pause.
        var offset = Int64.max
        /// The time at which the pause of the response ends at the latest.
        var until = Duration.zero
        /// `true` if the pause is extended because another connection delivers the next bytes.
        var isExtended = false
    }

    /// The rates of an attempt, in bytes per second.
    struct Rates {
        /// The rate of the attempt over the last seconds.
        var average = ThroughputEstimator(timeConstant: .seconds(2))
        /// The rate of the attempt in the last moments. A new connection still accelerates, so it ends sooner than its
        /// average rate predicts.
        var recent = ThroughputEstimator(timeConstant: .milliseconds(600))
        /// The highest average rate of the attempt so far, with which the current one is compared to find a connection
        /// that has become slow.
        var best = 0.0
        /// The time since when the rate of the attempt is far below the expected one; `nil` if it is not slow.
        var slowSince: Duration?
        /// `true` if no byte arrived for the stall timeout, and the response is not cut, because its bytes would be
        /// lost.
        var isSilent = false
    }

    /// A silent response that cannot be resumed gets more time if at least this number of bytes is written. A virus
    /// scanner on the path, or a server that packs an archive, may send the rest later.
    static let worthWaiting: Int64 = 1 << 20

    /// Records that the response is silent and is not cut before `limit`. Returns the notice for the user; `nil` if the
    /// response is not silent for the stall timeout `timeout`, or if the user has the notice.
    mutating func noteSilence(_ timeout: Duration, limit: Duration, now: Duration) -> String? {
        guard limit > timeout, isAccepted, !rates.isSilent, now - lastProgressAt >= timeout else { return nil }
        rates.isSilent = true
        return "no data received from the server for \(DurationText.inSentence(timeout)). Waiting for the rest up to"
            + " \(DurationText.inSentence(limit)), because the download cannot be resumed"
    }

    init(plan: AttemptPlan, startedAt: Duration, lastProgressAt: Duration) {
        self.plan = plan
        self.startedAt = startedAt
        self.lastProgressAt = lastProgressAt
        position = plan.lease.lowerBound
        bound = plan.lease.upperBound
    }

    /// The change in an attempt's progress since the previous event.
    struct Step {
        /// The number of bytes that the attempt received since the previous event.
        var bytes: Int64
        /// `true` if the attempt wrote bytes since the previous event.
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
        if progress.isHeldBack { rates.slowSince = nil }
        if progress.isHeldBack || step.bytes > 0 { (lastProgressAt, rates.isSilent) = (now, false) }
        received = progress.received
        if let position = progress.position {
            step.hasWritten = position > self.position
            self.position = max(position, self.position)
            if isAccepted, !isDisbelieved { step.claims = self.position }
        }
        rates.average.add(step.bytes, now: now)
        rates.recent.add(step.bytes, now: now)
        rates.best = max(rates.best, rates.average.rate ?? 0)
        return step
    }
}
