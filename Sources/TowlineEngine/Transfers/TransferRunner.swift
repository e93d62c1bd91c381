package import TowlineCore

/// Runs one transfer while other code may observe it, change its rate limit, and read the bytes that have arrived.
///
/// An actor around a `TransferRun`. A caller that needs no such access, such as a batch of small files, runs a
/// `TransferRun` without it.
package actor TransferRunner {
    /// The result of reading a part of a file while the file is downloaded.
    package enum Piece: Sendable {
        /// The bytes from the offset onward: at least one, perhaps fewer than requested.
        case bytes([UInt8])
        /// The bytes at the offset have not arrived. The `pulse` stream of `openReader` signals when to read again.
        case missing
        /// The offset is at or beyond the end of the file, so there are no bytes to read.
        case end
        /// The download started over since the reader began (its `generation`), perhaps with another version of the
        /// file. The bytes that were read before must not be joined with later ones.
        case changed
        /// The transfer has ended, so no more bytes can be read through it.
        case over
    }

    /// The number of bytes after a reader's position that the transfer requests before the rest of the file.
    package static let readAhead: Int64 = 8 << 20

    private let transfer: TransferRun
    private nonisolated let mailbox: TransferMailbox
    private nonisolated let limiter: RateLimiter

    /// Creates a transfer, which does nothing before `run`. `observer` gets its progress and notices, and is held
    /// weakly.
    package init(options: DownloadOptions, services: TransferServices, observer: (any TransferObserver)?) {
        transfer = TransferRun(options: options, services: services, observer: observer)
        (mailbox, limiter) = (transfer.mailbox, transfer.attempts.limiter)
    }

    /// Runs the transfer to its end and returns its result.
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

    /// Stops the transfer soon and keeps its bytes; `run` then throws `cancelled`. `purpose` decides whether the last
    /// bytes are synced to disk.
    package nonisolated func stop(_ purpose: StopPurpose) { mailbox.post(.stop(purpose)) }

    /// Changes this transfer's own rate limit, in bytes per second; 0: no limit.
    package nonisolated func setRateLimit(_ rate: Int64) { limiter.setRate(rate) }

    /// Reports that the machine's network changed. If it is available, a wait before the next request ends, unless the
    /// server asked for it; if it was unavailable before, connections that receive no bytes are replaced.
    package nonisolated func nudge(_ network: NetworkState) { mailbox.post(.nudge(network)) }

    /// The byte ranges of the file that are written, and those that running HTTP requests are to deliver, for display.
    package var segments: DownloadSegments { DownloadSegments(of: transfer.machine) }

    // MARK: Reading

    /// The state of the file for its readers: its generation (a number that changes when the download starts over), its
    /// length if known, and the written byte ranges.
    package var content: TransferContent { TransferContent(of: transfer.machine) }

    /// Adds a reader of the file while it is downloaded, and returns its number for `read`. `pulse` yields whenever
    /// more bytes may have arrived, and ends with the transfer.
    package func openReader() -> (number: Int, pulse: AsyncStream<Void>) { transfer.readers.open() }

    /// Removes a reader that `openReader` added. Its bytes are no longer requested before the rest of the file.
    package func closeReader(_ number: Int) { if transfer.readers.close(number) { mailbox.post(.wanted) } }

    /// Reads at most `count` bytes from the beginning of `range` for the reader `number`. Missing bytes, and those that
    /// follow them, are requested before the rest of the file. `generation` is the value in `content` when the reader
    /// began; after a change, the result is `.changed`.
    ///
    /// Reads on this actor, so that the file is not replaced during the read. The bytes are usually in the page cache.
    package func read(
        _ number: Int, _ range: ByteRange, atMost count: Int, generation: Int
    ) throws(TowlineError) -> Piece {
        guard transfer.ending == nil else { return .over }
        guard let part = transfer.part else { return waits(number, range) }
        let content = content
        guard content.generation == generation else { return .changed }
        if let length = content.completeLength, range.lowerBound >= length { return .end }
        guard let run = content.written.range(holding: range.lowerBound) else { return waits(number, range) }
        want(number, range, isWaiting: false)
        let wanted = min(Int64(count), run.upperBound - range.lowerBound, range.count)
        var bytes = [UInt8](repeating: 0, count: Int(wanted))
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(TowlineError) in try part.sink.read(into: buffer, at: range.lowerBound) }
        }
        if case .failure = result, transfer.machine.phase == .publishing {
            // The file is already published, and the event that ends the transfer follows.
            return .missing
        }
        guard try result.get() == Int(wanted) else {
            throw TowlineError(
                .diskFailure,
                "\(transfer.options.url): cannot read the downloaded bytes at offset \(range.lowerBound) from the part file."
                    + " Another program may have shortened the file. Read the content again later")
        }
        return .bytes(bytes)
    }

    private func waits(_ number: Int, _ range: ByteRange) -> Piece {
        want(number, range, isWaiting: true)
        return .missing
    }

    private func want(_ number: Int, _ range: ByteRange, isWaiting: Bool) {
        let (ahead, overflows) = range.lowerBound.addingReportingOverflow(Self.readAhead)
        let window = ByteRange(range.lowerBound, min(range.upperBound, overflows ? .max : ahead))
        if transfer.readers.move(number, to: window, isWaiting: isWaiting) { mailbox.post(.wanted) }
    }
}

/// The reason for a stop of a transfer, which decides whether its last bytes are synced to disk (made durable).
package enum StopPurpose: Sendable {
    /// The process is about to exit: the last sync to disk may take less than a second.
    case close
    /// The transfer will be resumed later: all its bytes are made durable.
    case pause
    /// The transfer starts again without delay, or its bytes are to be deleted: none need to be synced to disk.
    case discard
}
