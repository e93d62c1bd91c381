/// An event of a transfer, the input of its state machine. Received bytes are not events, but all rarer events are of
/// this type.
package enum TransferEvent: Sendable {
    /// The transfer begins, with the bytes that an earlier one left on disk; `nil`: without bytes.
    case begin(HeldDownload?)
    /// The transfer begins without bytes, and with a request that was already sent at `startedAt`, before the state
    /// machine existed (`SmallFilePolicy.plan`). The request's identifier is outside the block of identifiers that the
    /// state machine uses.
    case takenOver(AttemptPlan, startedAt: Duration)
    /// The head of an attempt's response arrived and was evaluated, with this verdict.
    case answered(AttemptID, ResponseVerdict)
    /// An attempt ended with this result.
    case ended(AttemptID, AttemptResult)
    /// The part file (and journal) that the action `prepare` requested exist.
    case prepared
    /// Opening, creating, verifying or publishing the file failed. The transfer fails with this error.
    case storageFailed(TowlineError)
    /// Another program deleted or replaced the part file. The download starts over.
    case partLost(reason: String)
    /// Verifying or publishing found that another program changed the part file. The download starts over.
    /// After a stop, which publishing ignores, `storageFailed` comes first.
    case partDamaged(reason: String)
    /// The regular timer event, about every 100 ms: the transfer checks stalls, waits and rates.
    case tick
    /// A checkpoint (a sync to disk) made these bytes durable.
    case checkpointed(ByteRangeSet)
    /// A checkpoint (a sync to disk) failed: only these bytes still count as written.
    case checkpointFailed(ByteRangeSet, TowlineError)
    /// The checksums that the action `verify` requested were computed. `mismatches` contains those that do not match.
    case verified(mismatches: [ChecksumMismatch])
    /// The file has its final name: the action `publish` succeeded.
    case published
    /// The computer's network changed. If it is available, a request that failed before may succeed now.
    case networkChanged(NetworkState)
    /// Readers of the incomplete file need these bytes, the most urgent first; they are requested before the rest. Each
    /// such event replaces the previous one.
    case wanted([ByteRange])
    /// The user stops the transfer; all bytes are kept.
    case stop
}

/// The result of an attempt, as the transfer sees it.
package enum AttemptResult: Sendable {
    /// The body is complete by its own framing, such as `Content-Length`.
    case complete(AttemptEnd.Framing)
    /// The transfer closed the response: all bytes that were needed from it arrived, or the response was not wanted.
    case stopped
    /// The transfer cancelled the attempt.
    case cancelled
    /// The connection or the HTTP exchange of the attempt failed.
    case failed(TransportFailure)
    /// Writing the received bytes to disk failed.
    case sinkFailed(TowlineError)
    /// The bytes before the assigned range, which were requested again for comparison, differ from the written ones.
    case overlapDiffers
    /// The content does not match its `Content-Digest`; the bytes that the attempt wrote from this offset on are wrong.
    case digestDiffers(from: Int64)
    /// The attempt shared a connection, and its file is not small. The attempt was abandoned before it took a byte, and
    /// the file is requested again over a connection of its own.
    case needsOwnConnection

    /// Returns whether the connection was closed before the response ended, so that the server may count it for a
    /// while. This includes a refusal whose body was not read. An attempt that failed before its response was accepted
    /// may have had no connection.
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

/// The progress of an attempt: the bytes received and written so far.
package struct AttemptProgress: Hashable, Sendable {
    /// The end of the written bytes, without a gap from the start of the assigned range; `nil` until the response is
    /// being written.
    package var position: Int64?
    /// The number of body bytes received, including bytes that were requested again for comparison.
    package var received: Int64
    /// `true` if a rate limit of the user delays the attempt: bytes wait to be read, so the attempt is not stalled.
    package var isHeldBack: Bool

    /// Creates the progress of an attempt.
    package init(position: Int64?, received: Int64, isHeldBack: Bool = false) {
        self.position = position
        self.received = received
        self.isHeldBack = isHeldBack
    }
}

/// The environment of the transfer at the time of an event. "The host" is the host that gets the next request.
package struct TransferContext: Sendable {
    /// The time of the event on the monotonic clock.
    package var now: Duration
    /// The progress of each running attempt.
    package var progress: [(id: AttemptID, progress: AttemptProgress)]
    /// The time before which the host of the next request wants no requests; `nil`: at any time.
    package var hostNotBefore: Duration?
    /// The connection limit of the host of the next request; `nil` if unknown.
    package var hostCeiling: Int?
    /// The number of connections of this process to the host of the next request, including those of this transfer.
    package var hostConnections: Int
    /// `true` if other transfers of this process receive bytes from the host that sent the event's response or served
    /// its attempt.
    package var othersWork = false
    /// The way in which requests for small files share connections to the host of the next request.
    package var sharing: ConnectionSharing
    /// `true` if this transfer may open connections of its own to the host of the next request; if `false`, it waits or
    /// shares a connection.
    package var mayConnect: Bool
    /// `true` if this transfer has a slot, one of the downloads that its batch runs in parallel; if `false`, it waits.
    package var hasSlot = true
    /// A random number in 0 ..< 1, which varies the waits before retries.
    package var jitter: Double
    /// `true` if the user limited the rate of this transfer or of all transfers.
    package var isLimited = false
    /// The known limits of the mirrors' hosts, in the order of the mirrors.
    package var mirrors: [MirrorHost] = []
    /// The known limits of the host that a redirect leads to; set only if `leads(_:_:)` names a host for the event.
    package var elsewhere = Elsewhere()

    /// The known limits of the host that a redirect leads to, so that the redirect can be followed immediately or
    /// later.
    package struct Elsewhere: Hashable, Sendable {
        /// The way in which requests for small files share connections to the host that a redirect leads to.
        package var sharing = ConnectionSharing.none
        /// `true` if this transfer may open connections of its own to the host that a redirect leads to.
        package var mayConnect = true
        /// The time before which the host that a redirect leads to wants no requests; `nil`: at any time.
        package var notBefore: Duration?

        /// Creates the values for an unknown host: connections of its own are allowed, and no wait applies.
        package init() {}
    }

    /// The known limits of a mirror's host.
    package struct MirrorHost: Sendable {
        /// The time before which the mirror's host wants no requests; `nil`: at any time.
        package var notBefore: Duration?
        /// The connection limit of the mirror's host; `nil` if unknown.
        package var ceiling: Int?
        /// The number of connections of other transfers to the mirror's host.
        package var otherConnections: Int

        /// Creates the known limits of the host of a mirror.
        package init(notBefore: Duration?, ceiling: Int?, otherConnections: Int) {
            self.notBefore = notBefore
            self.ceiling = ceiling
            self.otherConnections = otherConnections
        }
    }

    /// Creates the context of an event: the time, the progress of the requests, and the known limits of the host.
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
