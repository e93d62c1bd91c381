package import TowlineCore

/// Runs one transfer, and lets others look at it and read from it meanwhile.
///
/// An actor around a `TransferRun`. Who needs neither, as a batch of many small files, runs that itself.
package actor TransferRunner {
    /// What a reader finds at an offset.
    package enum Piece: Sendable {
        /// Bytes from there on.
        case bytes([UInt8])
        /// Not yet; the reader's pulse tells when to look again.
        case missing
        /// The end of the file.
        case end
        /// What was read before may be of another file, or wrong: it must not be joined with what is there now.
        case changed
        /// The transfer is over.
        case over
    }

    /// How far beyond what a reader asks for bytes come ahead of the rest.
    package static let readAhead: Int64 = 8 << 20

    private let transfer: TransferRun
    private nonisolated let mailbox: TransferMailbox
    private nonisolated let limiter: RateLimiter

    /// Prepares a transfer; nothing happens before `run`.
    package init(options: DownloadOptions, services: TransferServices, observer: (any TransferObserver)?) {
        transfer = TransferRun(options: options, services: services, observer: observer)
        (mailbox, limiter) = (transfer.mailbox, transfer.limiter)
    }

    /// Runs to the end.
    ///
    /// - Throws: `cancelled` after `stop`, or if the task is cancelled; otherwise what went wrong. The part file and its
    ///   journal stay wherever another run could go on with them.
    package func run() async throws(TowlineError) -> CompletedTransfer {
        let result = await withTaskCancellationHandler {
            await transfer.result()
        } onCancel: {
            mailbox.post(.stop(.pause))
        }
        return try result.get()
    }

    /// Ends the transfer soon, with everything kept; `run` then throws `cancelled`.
    package nonisolated func stop(_ purpose: StopPurpose) { mailbox.post(.stop(purpose)) }

    /// Changes this transfer's own rate limit, in bytes per second; 0: none.
    package nonisolated func setRateLimit(_ rate: Int64) { limiter.setRate(rate) }

    /// The network changed: a wait before the next attempt ends now, unless the server asked for it. Cheap, and no
    /// error at any time.
    package nonisolated func nudge() { mailbox.post(.nudge) }

    /// Which bytes are there, and which are on their way.
    package var segmentMap: SegmentMap { transfer.machine.segmentMap }

    // MARK: Reading

    /// What there is to read.
    package var content: TransferContent { transfer.machine.content }

    /// Begins to read. The stream gives something whenever more may be there, and ends with the transfer.
    package func openReader() -> (number: Int, pulse: AsyncStream<Void>) { transfer.readers.open() }

    /// Ends what `openReader` began.
    package func closeReader(_ number: Int) { transfer.closeReader(number) }

    /// Reads at most `count` bytes of `range`, from its beginning; what is missing is fetched ahead of the rest, with
    /// what follows it.
    ///
    /// Reads from the page cache as a rule, and on this actor, so that nothing replaces the file meanwhile.
    package func read(
        _ number: Int, _ range: ByteRange, atMost count: Int, generation: Int
    ) throws(TowlineError) -> Piece {
        try transfer.read(number, range, atMost: count, generation: generation)
    }
}

/// What a transfer is stopped for.
package enum StopPurpose: Sendable {
    /// The process is about to end: nothing may take long.
    case close
    /// It goes on another time.
    case pause
    /// It begins again at once, or what it has is to go: nothing need be durable.
    case discard
}
