internal import TowlineCore

/// The checkpoints of one transfer: regular syncs of the part file that make its written bytes durable
/// (docs/internals/durability.md).
struct Checkpoints {
    private let services: TransferServices
    private let mailbox: TransferMailbox
    private var policy: CheckpointPolicy
    /// The background task that makes the written bytes durable now; `nil` if none runs.
    private var running: Task<Void, Never>?
    /// The time of the last check that no other program deleted, moved or replaced the part file.
    private var lastIntact: Duration

    /// The reason why the transfer was stopped, which limits the time for the last sync; `nil` if it was not stopped.
    var stopPurpose: StopPurpose?

    init(_ services: TransferServices, _ mailbox: TransferMailbox) {
        (self.services, self.mailbox) = (services, mailbox)
        lastIntact = services.now
        policy = CheckpointPolicy(now: lastIntact)
    }

    /// Restarts the schedule of checkpoints (syncs of the part file), because a new part file replaced the old one.
    mutating func reset() { policy = CheckpointPolicy(now: services.now) }

    /// Records that a checkpoint (sync of the part file) ended, which began at `start` when `bytes` bytes had been
    /// received. They determine when the next one is due.
    mutating func completed(start: Duration, bytes: Int64) {
        running = nil
        policy.completed(start: start, now: services.now, bytes: bytes)
    }

    /// Checks, at most once a second, that no other program deleted, moved or replaced the part file. Returns the error
    /// if one did; otherwise `nil`.
    mutating func checkPart(_ part: OpenPart?) -> TowlineError? {
        guard let part, services.now - lastIntact > .seconds(1) else { return nil }
        lastIntact = services.now
        do throws(TowlineError) { try part.sink.checkIntact() } catch { return error }
        return nil
    }

    /// Starts a checkpoint, which syncs the part file in the background, if one is due. `bytes`: the number of bytes
    /// received so far.
    mutating func startIfDue(_ part: OpenPart?, bytes: Int64) {
        guard let part, let journal = part.journal else { return }
        let start = services.now
        if policy.startsWriteback(bytes: bytes) { part.sink.startWriteback() }
        guard running == nil, policy.isDue(now: start, bytes: bytes) else { return }
        let mailbox = mailbox
        running = services.begin {
            let event: TransferEvent
            do throws(TowlineError) {
                try await journal.checkpoint(part.sink)
                event = .checkpointed(journal.durable)
            } catch {
                event = .checkpointFailed(journal.durable, error)
            }
            mailbox.post(.checkpoint(event, of: ObjectIdentifier(part.sink), start: start, bytes: bytes))
        }
    }

    /// Ends the checkpoints (syncs of the part file) when a transfer ends. Makes its last bytes durable unless that is
    /// likely to take long. If this returns before its time limit, no sync is running, and the next transfer can use
    /// the part file.
    ///
    /// - Parameter bytes: the number of received bytes; `nil` if none are to be made durable.
    nonisolated(nonsending) func finish(_ part: OpenPart, bytes: Int64?) async {
        guard let journal = part.journal else { return }
        let running = running
        let wanted = stopPurpose == .discard ? nil : bytes
        let isBehind = wanted.map { policy.isBehind(bytes: $0) || journal.written != journal.durable } ?? false
        let makesOne = isBehind && policy.isQuick
        guard running != nil || makesOne else { return }
        let (isOver, over) = AsyncStream<Void>.makeStream()
        services.begin {
            await running?.value
            // A failed checkpoint unmarks the bytes that it could not sync, and does not change how the transfer ends.
            if makesOne { try? await journal.checkpoint(part.sink) }
            over.finish()
        }
        let most = stopPurpose == .close ? CheckpointPolicy.patienceAtExit : CheckpointPolicy.patienceAtEnd
        services.after(most) { over.finish() }
        for await _ in isOver {}
    }
}
