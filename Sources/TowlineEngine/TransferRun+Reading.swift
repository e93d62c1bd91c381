internal import TowlineCore

/// Reading the bytes of the file that have arrived while the rest is downloaded.
extension TransferRun {
    /// See `TransferRunner.closeReader`.
    func closeReader(_ number: Int) {
        if readers.close(number) { mailbox.post(.wanted) }
    }

    /// See `TransferRunner.read`.
    func read(
        _ number: Int, _ range: ByteRange, atMost count: Int, generation: Int
    ) throws(TowlineError) -> TransferRunner.Piece {
        guard ending == nil else { return .over }
        guard let part else { return waits(number, range) }
        let content = TransferContent(of: machine)
        guard content.generation == generation else { return .changed }
        if let length = content.completeLength, range.lowerBound >= length { return .end }
        guard let run = content.written.range(holding: range.lowerBound) else { return waits(number, range) }
        want(number, range, isWaiting: false)
        let wanted = min(Int64(count), run.upperBound - range.lowerBound, range.count)
        var bytes = [UInt8](repeating: 0, count: Int(wanted))
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(TowlineError) in try part.sink.read(into: buffer, at: range.lowerBound) }
        }
        if case .failure = result, machine.phase == .publishing {
            // The file is already published, and the event that ends the transfer follows.
            return .missing
        }
        guard try result.get() == Int(wanted) else {
            throw TowlineError(
                .diskFailure,
                "\(options.url): cannot read the downloaded bytes at offset \(range.lowerBound) from the part file."
                    + " Another program may have shortened the file. Read the content again later")
        }
        return .bytes(bytes)
    }

    private func waits(_ number: Int, _ range: ByteRange) -> TransferRunner.Piece {
        want(number, range, isWaiting: true)
        return .missing
    }

    private func want(_ number: Int, _ range: ByteRange, isWaiting: Bool) {
        let (ahead, overflows) = range.lowerBound.addingReportingOverflow(TransferRunner.readAhead)
        let window = ByteRange(range.lowerBound, min(range.upperBound, overflows ? .max : ahead))
        if readers.move(number, to: window, isWaiting: isWaiting) { mailbox.post(.wanted) }
    }
}
