/// The work of a transfer: the written bytes, the running attempts, and the ranges assigned to them.
struct TransferWork: Sendable {
    let terms: TransferTerms
    var ledger = RangeLedger()
    /// The running attempts, in the order in which they began.
    var attempts: [RunningAttempt] = []
    var nextID: UInt64
    var budget: ConnectionBudget
    /// `true` if the transfer uses a single connection.
    var isSingle: Bool
    /// The ranges that readers wait for or will read next, the most urgent first.
    var wanted: [ByteRange] = []
    var pace = TransferPace()
    var further = FurtherConnections()
    var slow = SlowConnections()
    /// `true` if the file is not small, or stalled on a shared connection: its requests get a connection of their own.
    var needsOwnConnection = false
    /// `true` while the transfer waits for its slot in a batch, or for permission to open a connection of its own.
    var waitsForTurn = false
    /// The way in which the last complete response shared its connection with other requests.
    var sharing = ConnectionSharing.none

    /// The progress of all attempts since the previous event.
    struct Step {
        /// The number of received bytes.
        var bytes: Int64 = 0
        /// The sources of the attempts that wrote bytes.
        var sources: [SourceID] = []
        /// `true` if written bytes were joined to earlier ones.
        var isJoined = false
        /// `true` if a rate limit of the user held bytes back.
        var isHeldBack = false
    }

    /// Records the progress of each attempt.
    mutating func follow(_ context: TransferContext) -> Step {
        var all = Step()
        for (id, progress) in context.progress {
            guard let step = attempts.change(id, { $0.follow(progress, now: context.now) }).flatMap(\.self) else {
                continue
            }
            all.bytes += step.bytes
            if progress.isHeldBack { all.isHeldBack = true }
            if progress.isHeldBack || step.hasWritten { pace.lastWrittenAt = context.now }
            if step.hasWritten {
                all.sources.append(attempts[id]?.plan.source ?? .primary)
                all.isJoined = all.isJoined || step.claims != nil
            }
            if let position = step.claims { ledger.advance(id, to: position) }
        }
        pace.receivedBytes += all.bytes
        if all.isHeldBack { pace.lastHeldBackAt = context.now }
        if all.bytes > 0 { pace.lastReceivedAt = context.now }
        pace.estimator.add(all.bytes, now: context.now)
        return all
    }

    /// Records how the number of connections affects the rate.
    mutating func measure(_ step: Step, _ context: TransferContext) {
        let sample = ConnectionBudget.Sample(
            bytes: step.bytes, active: workingCount(context),
            remaining: ledger.completeLength.map { $0 - ledger.written.count },
            roundTrip: .seconds(pace.roundTrip ?? 0), isLimited: context.isLimited, isHeldBack: step.isHeldBack)
        further.hasSurplus = budget.measure(sample, now: context.now)
    }

    /// Returns the number of connections that increase the rate if it was not returned before; otherwise `nil`.
    mutating func newFinding() -> Int? {
        guard let finding = budget.finding, finding != further.toldFinding else { return nil }
        further.toldFinding = finding
        return finding
    }
}
