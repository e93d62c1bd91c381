internal import TowlineCore

/// Responses that are reported later than their heads arrive: because the body is small and is held in memory until it
/// is complete, or because the first bytes decide how the response is handled.
extension AttemptWriter {
    /// Takes bytes of a response that is not reported yet.
    ///
    /// - Returns: `nil` if these bytes caused the report, and must be handled like those of any other response.
    func gather(_ bytes: UnsafeRawBufferPointer, _ delay: Delay) -> BodyDisposition? {
        switch delay {
        case .redirect(let left):
            if case .unreported(let verdict, _) = phase {
                phase = .unreported(verdict, .redirect(left: left - Int64(bytes.count)))
            }
            return left < bytes.count ? .stop : .consumed
        case .firstBytes(let decision):
            let first = gathered + bytes.prefix(WebPage.mostLooked)
            guard !decision.isDecided(by: first), buffers.grow(&gathered, to: gathered.count + bytes.count) else {
                tell { decision.verdict($0, after: first) }
                return nil
            }
            if let wait = takeAllowance(bytes.count, from: plan.seam.lowerBound) { return .pauseFor(wait) }
        case .small:
            if let refusal = makeRoom(for: bytes.count) { return refusal }
            guard case .unreported = phase else { return nil }
            if let wait = takeAllowance(bytes.count, from: plan.seam.lowerBound) {
                tell()
                return .pauseFor(wait)
            }
        }
        gathered.append(contentsOf: bytes)
        return .consumed
    }

    /// Makes room for `more` bytes in memory and returns `nil`. Without room, or if the body is longer than promised or
    /// than a small file, reports the response or, on a shared connection, returns the instruction that ends it.
    private func makeRoom(for more: Int) -> BodyDisposition? {
        let count = gathered.count + more
        let isTooLong = count > min(response.end, SmallFilePolicy.mostHeld(of: plan))
        guard isTooLong || !buffers.grow(&gathered, to: count) else { return nil }
        guard plan.sharesConnection, !isTooLong || !response.hasLength else {
            tell()
            return nil
        }
        // On a shared connection, no response waits for a part file.
        if isTooLong { response.promise = .long }
        phase = .stopped(.needsOwnConnection)
        return .stop
    }

    /// Reports a response whose report was delayed. The transfer then handles it like any other response.
    ///
    /// - Parameter change: returns the verdict to report instead of the one on the head.
    private func tell(_ change: (ResponseVerdict) -> ResponseVerdict = { $0 }) {
        guard case .unreported(let verdict, let delay) = phase else { return }
        if case .redirect(let left) = delay {
            phase = .draining(left: left)
        } else {
            phase = .reported(isPaused: false)
        }
        if !response.hasLength { response.promise = .long }
        report(.answered(plan.id, change(verdict)))
    }

    func bodyDeadlinePassed() {
        // On a shared connection, a stream without a length may still be small. It is held until it ends or is too
        // long.
        if !plan.sharesConnection || response.hasLength { tell() }
    }

    /// Returns the report of a response that ended before it was reported.
    func endReport(of verdict: ResponseVerdict, _ delay: Delay) -> Report {
        guard case .firstBytes(let decision) = delay else { return .answeredAndEnded(plan.id, verdict) }
        // Without all of its bytes, nothing is known about it.
        guard framing != nil else { return .ended(plan.id, resultOfEnd) }
        return .answeredAndEnded(plan.id, decision.verdict(verdict, after: gathered).ending(at: Int64(gathered.count)))
    }

    /// Returns the number of bytes of memory to reserve for a response that is, or may be, a whole small file; `nil` if
    /// the body must be written to a part file as it arrives.
    func gatherable(_ verdict: ResponseVerdict, _ head: ResponseHead) -> Int64? {
        let length: Int64?
        switch verdict {
        case .partial(let range, let facts):
            let isWhole = range.lowerBound == 0 && range.upperBound == facts.representation.completeLength
            length = isWhole ? range.upperBound : nil
        case .whole(let facts):
            // The length of a chunked body or a stream is not known before its end.
            let mayBeSmall = facts.isChunked || head.version == .http2
            length = facts.representation.completeLength ?? (mayBeSmall ? Self.usualLength : nil)
        default: length = nil
        }
        guard mayGather, let length, length <= SmallFilePolicy.mostHeld(of: plan) else { return nil }
        return length
    }

    /// The number of bytes of memory to reserve for a body of unknown length.
    private static let usualLength: Int64 = 16 << 10

    /// The result of an attempt that was reported as `answeredAndEnded`, before `conclude` writes its bytes.
    var resultOfEnd: AttemptResult { AttemptResult(end) }
}

extension AttemptWriter: BufferedBody {
    /// Returns whether the complete file is in memory. Valid after the report `answeredAndEnded`.
    var holdsWhole: Bool { framing != nil && (Int64(gathered.count) == response.end || !response.hasLength) }

    /// The way in which the end of the body was recognized; `nil` if the response was cut short. Valid after the report
    /// `answeredAndEnded`.
    var framing: AttemptEnd.Framing? { if case .complete(let framing) = end { framing } else { nil } }

    /// The bytes of a response reported as `answeredAndEnded`. A reader drops its copy before `release`.
    var held: [UInt8] { gathered }

    func release() { buffers.give(&gathered) }

    func hold(_ bytes: [UInt8]) {
        gathered = bytes
        buffers.adopt(bytes)
    }
}
