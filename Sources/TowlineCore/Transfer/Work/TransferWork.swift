/// The work of a transfer in progress: the written bytes, the running attempts, and the ranges assigned to them.
struct TransferWork: Sendable {
    let terms: TransferTerms
    var ledger = RangeLedger()
    /// The running attempts, in the order in which they began.
    var attempts: [RunningAttempt] = []
    /// The number that the identifier of the next attempt gets.
    var nextID: UInt64
    /// The policy for the number of connections: how many the transfer may use, and how many increase its rate.
    var budget: ConnectionBudget
    /// `true` if the transfer uses a single connection, for example because the user or the server allows no more.
    var isSingle: Bool
    /// The ranges that readers of the incomplete file wait for or will read next, the most urgent first.
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

    /// The progress of all attempts of a transfer since the previous event.
    struct Step {
        /// The number of bytes that all attempts received since the previous event.
        var bytes: Int64 = 0
        /// The sources (URLs) of the attempts that wrote bytes since the previous event.
        var sources: [SourceID] = []
        /// `true` if new bytes count as written. If bytes of an earlier transfer are resumed, the notice is due.
        var hasClaims = false
        /// `true` if new bytes were joined to written ones.
        var isJoined = false
        /// `true` if the user's rate limit delayed bytes since the previous event.
        var isHeldBack = false
    }

    /// Records the progress of each attempt, and returns the sum of all since the previous event.
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
                all.hasClaims = all.hasClaims || step.claims != nil
                let isJoined = step.claims != nil && attempts[id]?.plan.lease.lowerBound != 0
                all.isJoined = all.isJoined || isJoined
            }
            if let position = step.claims { ledger.advance(id, to: position) }
        }
        pace.receivedBytes += all.bytes
        if all.isHeldBack { pace.lastHeldBackAt = context.now }
        if all.bytes > 0 { pace.lastReceivedAt = context.now }
        pace.estimator.add(all.bytes, now: context.now)
        return all
    }

    /// Records the rate of the transfer with its current number of connections, to learn how many connections increase
    /// it.
    mutating func measure(_ step: Step, _ context: TransferContext) {
        let sample = ConnectionBudget.Sample(
            bytes: step.bytes, active: workingCount(context),
            remaining: ledger.completeLength.map { $0 - ledger.written.count },
            roundTrip: .seconds(pace.roundTrip ?? 0), isLimited: context.isLimited, isHeldBack: step.isHeldBack)
        further.hasSurplus = budget.measure(sample, now: context.now)
    }

    /// Returns the number of connections that increase the rate, to report it to the host's other downloads; `nil` if
    /// it is unknown or was returned before.
    mutating func newFinding() -> Int? {
        guard let finding = budget.finding, finding != further.toldFinding else { return nil }
        further.toldFinding = finding
        return finding
    }
}
