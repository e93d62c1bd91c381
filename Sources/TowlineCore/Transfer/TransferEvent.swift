/// What happened to a transfer. Everything rare is one of these; bytes are not.
package enum TransferEvent: Sendable {
    /// The transfer begins, with what an earlier one left.
    case begin(HeldDownload?)
    /// The transfer begins with nothing, and with a request that was sent at that time (`SmallFilePolicy.plan`). Its name is of
    /// another block than those of the machine's own.
    case takenOver(AttemptPlan, startedAt: Duration)
    /// A response head came and was judged.
    case answered(AttemptID, ResponseVerdict)
    /// An attempt is over.
    case ended(AttemptID, AttemptResult)
    /// The part file (and journal) that `prepare` asked for are there.
    case prepared
    /// Opening, creating, verifying or publishing failed.
    case storageFailed(TowlineError)
    /// The part file was deleted or replaced behind our back.
    case partLost(reason: String)
    /// Some time has passed.
    case tick
    /// A checkpoint made these bytes durable.
    case checkpointed(ByteRangeSet)
    /// A checkpoint failed: only these bytes may still be believed.
    case checkpointFailed(ByteRangeSet, TowlineError)
    /// The checksums were computed; these do not match.
    case verified(mismatches: [ChecksumMismatch])
    /// The file is under its name.
    case published
    /// The machine's network came back, or is another one: what failed before may work now.
    case networkChanged
    /// Somebody reads these bytes while they arrive, the most urgent first; they come ahead of the rest. Each such event
    /// takes the place of the one before.
    case wanted([ByteRange])
    /// The user wants it to stop, everything kept.
    case stop
}

/// How an attempt ended, as the transfer sees it.
package enum AttemptResult: Sendable {
    /// The body came whole by its own framing.
    case complete(AttemptEnd.Framing)
    /// We closed it: its segment is full, or its response was not wanted.
    case stopped
    /// The transfer cancelled it.
    case cancelled
    /// The wire failed.
    case failed(TransportFailure)
    /// Writing failed.
    case sinkFailed(TowlineError)
    /// The bytes before the seam are not those held.
    case overlapDiffers
    /// The content does not hash to its `Content-Digest`; what it wrote, from the offset on, is wrong.
    case digestDiffers(from: Int64)
    /// It shared a connection, and what it was about to bring is not small: given up before a byte of it was taken.
    case needsOwnConnection

    /// Returns whether the connection was closed before the response ended, so that the server may count it for a
    /// while: also that of a refusal whose body was not read. One that failed before a response was accepted may not
    /// exist.
    func closesConnection(isAccepted: Bool) -> Bool {
        switch self {
        case .complete: false
        case .stopped, .cancelled: true
        default: isAccepted
        }
    }

    /// Makes the result of an attempt from the end of its response.
    package init(_ end: AttemptEnd) {
        self =
            switch end {
            case .complete(let framing): .complete(framing)
            case .stopped: .stopped
            case .cancelled: .cancelled
            case .failed(let failure): .failed(failure)
            }
    }
}

/// How far an attempt is.
package struct AttemptProgress: Hashable, Sendable {
    /// Everything from the lease's start to here is written; `nil` until its answer is being written at all.
    package var position: Int64?
    /// Body bytes received, overlap included.
    package var received: Int64
    /// A rate limit of ours holds it back: bytes wait to be taken, so it does not stand still.
    package var isHeldBack: Bool

    /// Makes one.
    package init(position: Int64?, received: Int64, isHeldBack: Bool = false) {
        self.position = position
        self.received = received
        self.isHeldBack = isHeldBack
    }
}

/// What the world looks like when an event is handled.
package struct TransferContext: Sendable {
    /// Monotonic time.
    package var now: Duration
    /// How far each running attempt is.
    package var progress: [(id: AttemptID, progress: AttemptProgress)]
    /// The host asked to be left alone until then.
    package var hostNotBefore: Duration?
    /// Connections the host is known to allow.
    package var hostCeiling: Int?
    /// Connections that this process has to the host, those of this transfer among them.
    package var hostConnections: Int
    /// Whether other transfers of this process get bytes from the host of the answer or the attempt that this is about.
    package var othersWork = false
    /// How small files of the host share connections.
    package var sharing: ConnectionSharing
    /// Whether this transfer is one of those that may have connections of their own to the host.
    package var mayConnect: Bool
    /// Whether this transfer is one of those of its batch that fetch.
    package var hasSlot = true
    /// A random number in 0 ..< 1.
    package var jitter: Double
    /// The user set a limit to the rate, of this transfer or of all.
    package var isLimited = false
    /// The hosts of the mirrors, in their order.
    package var mirrors: [MirrorHost] = []
    /// The host that a redirect leads to.
    package var elsewhere = Elsewhere()

    /// What is known of the host that a redirect leads to.
    package struct Elsewhere: Hashable, Sendable {
        /// How its small files share connections.
        package var sharing = ConnectionSharing.none
        /// Whether this transfer is one of those that may have connections of their own there.
        package var mayConnect = true
        /// It asked to be left alone until then.
        package var notBefore: Duration?

        /// Nothing is known.
        package init() {}
    }

    /// What is known of a mirror's host.
    package struct MirrorHost: Sendable {
        /// It asked to be left alone until then.
        package var notBefore: Duration?
        /// Connections that it is known to allow.
        package var ceiling: Int?
        /// Connections that other transfers have to it.
        package var otherConnections: Int

        /// Makes one.
        package init(notBefore: Duration?, ceiling: Int?, otherConnections: Int) {
            self.notBefore = notBefore
            self.ceiling = ceiling
            self.otherConnections = otherConnections
        }
    }

    /// Makes one.
    package init(
        now: Duration, progress: [(id: AttemptID, progress: AttemptProgress)] = [], hostNotBefore: Duration? = nil,
        hostCeiling: Int? = nil, hostConnections: Int = 0, sharing: ConnectionSharing = .none, mayConnect: Bool = true,
        jitter: Double = 0.5
    ) {
        self.now = now
        self.progress = progress
        self.hostNotBefore = hostNotBefore
        self.hostCeiling = hostCeiling
        self.hostConnections = hostConnections
        self.sharing = sharing
        self.mayConnect = mayConnect
        self.jitter = jitter
    }
}
