package import TowlineCore

/// A runner for one transfer, which others may observe and read from meanwhile.
///
/// An actor around a `TransferRun`. A caller that needs neither, such as a batch of small files, runs a `TransferRun`
/// without it.
package actor TransferRunner {
    /// The result of a read at an offset.
    package enum Piece: Sendable {
        /// The bytes from the offset on.
        case bytes([UInt8])
        /// The bytes have not arrived. The reader's `pulse` signals when to read again.
        case missing
        /// The end of the file.
        case end
        /// Bytes of earlier reads may be wrong or of another file. They must not be joined with the present bytes.
        case changed
        /// The transfer has ended.
        case over
    }

    /// The number of bytes from a reader's offset on that are requested ahead of the rest.
    package static let readAhead: Int64 = 8 << 20

    private let transfer: TransferRun
    private nonisolated let mailbox: TransferMailbox
    private nonisolated let limiter: RateLimiter

    /// Creates a transfer, which does nothing before `run`.
    package init(options: DownloadOptions, services: TransferServices, observer: (any TransferObserver)?) {
        transfer = TransferRun(options: options, services: services, observer: observer)
        (mailbox, limiter) = (transfer.mailbox, transfer.limiter)
    }

    /// Runs the transfer to its end.
    ///
    /// - Throws: `cancelled` after `stop`, or if the task is cancelled; otherwise the error of the transfer. The part
    ///   file and its journal are kept if another run can resume them.
    package func run() async throws(TowlineError) -> CompletedTransfer {
        let result = await withTaskCancellationHandler {
            await transfer.result()
        } onCancel: {
            mailbox.post(.stop(.pause))
        }
        return try result.get()
    }

    /// Stops the transfer soon and keeps its bytes; `run` then throws `cancelled`.
    package nonisolated func stop(_ purpose: StopPurpose) { mailbox.post(.stop(purpose)) }

    /// Changes this transfer's own rate limit, in bytes per second; 0: no limit.
    package nonisolated func setRateLimit(_ rate: Int64) { limiter.setRate(rate) }

    /// Reports that the network changed: a wait before the next attempt ends now, unless the server asked for it.
    /// Cheap, and allowed at any time.
    package nonisolated func nudge() { mailbox.post(.nudge) }

    /// The map of the bytes that are written and of those that are being requested.
    package var segmentMap: SegmentMap { transfer.machine.segmentMap }

    // MARK: Reading

    /// The content that can be read, as far as it is known now.
    package var content: TransferContent { transfer.machine.content }

    /// Adds a reader. `pulse` yields whenever more bytes may be there, and ends with the transfer.
    package func openReader() -> (number: Int, pulse: AsyncStream<Void>) { transfer.readers.open() }

    /// Removes a reader that `openReader` added.
    package func closeReader(_ number: Int) { transfer.closeReader(number) }

    /// Reads at most `count` bytes from the beginning of `range`. Missing bytes, and those that follow them, are
    /// requested ahead of the rest.
    ///
    /// Reads on this actor, so that nothing replaces the file meanwhile. The bytes are usually in the page cache.
    package func read(
        _ number: Int, _ range: ByteRange, atMost count: Int, generation: Int
    ) throws(TowlineError) -> Piece {
        try transfer.read(number, range, atMost: count, generation: generation)
    }
}

/// The purpose of a stop.
package enum StopPurpose: Sendable {
    /// The process is about to exit: nothing may take long.
    case close
    /// The transfer will be resumed later.
    case pause
    /// The transfer starts again at once, or its bytes are to be deleted: nothing has to be durable.
    case discard
}
