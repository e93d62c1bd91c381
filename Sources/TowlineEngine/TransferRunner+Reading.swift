package import TowlineCore

/// Reading what is there while the rest arrives.
extension TransferRunner {
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

    /// What there is to read.
    package var content: TransferContent { machine.content }

    /// Begins to read. The stream gives something whenever more may be there, and ends with the transfer.
    package func openReader() -> (number: Int, pulse: AsyncStream<Void>) { readers.open() }

    /// Ends what `openReader` began.
    package func closeReader(_ number: Int) {
        if readers.close(number) { continuation.yield(.wanted) }
    }

    /// Reads at most `count` bytes of `range`, from its beginning; what is missing is fetched ahead of the rest, with
    /// what follows it.
    ///
    /// Reads from the page cache as a rule, and on this actor, so that nothing replaces the file meanwhile.
    package func read(
        _ number: Int, _ range: ByteRange, atMost count: Int, generation: Int
    ) throws(TowlineError) -> Piece {
        guard ending == nil else { return .over }
        guard let part else { return waits(number, range) }
        guard machine.content.generation == generation else { return .changed }
        if let length = machine.content.completeLength, range.lowerBound >= length { return .end }
        guard let run = machine.content.written.range(holding: range.lowerBound) else { return waits(number, range) }
        want(number, range, isWaiting: false)
        let wanted = min(Int64(count), run.upperBound - range.lowerBound, range.count)
        var bytes = [UInt8](repeating: 0, count: Int(wanted))
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(TowlineError) in try part.sink.read(into: buffer, at: range.lowerBound) }
        }
        if case .failure = result, machine.isPublishing {
            // The file has its name, and the end of the transfer is about to be heard of.
            return .missing
        }
        guard try result.get() == Int(wanted) else {
            throw TowlineError(.diskFailure, "\(options.url): bytes that were written are not there")
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
        if readers.move(number, to: window, isWaiting: isWaiting) { continuation.yield(.wanted) }
    }
}
