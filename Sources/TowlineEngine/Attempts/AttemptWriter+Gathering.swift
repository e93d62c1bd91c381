internal import TowlineCore

/// The functions of `AttemptWriter` for responses that are reported to the transfer some time after their heads
/// arrived. A small body is first collected in memory, and for some responses the first bytes decide how to handle
/// them.
extension AttemptWriter {
    /// Takes body bytes of a response that was not yet reported to the transfer: collects them in memory, or drops the
    /// bytes of a redirect.
    ///
    /// - Returns: `nil` if these bytes made the writer report the response; the caller must then handle them like other
    ///   body bytes. Otherwise the instruction for the transport.
    func gather(_ bytes: UnsafeRawBufferPointer, _ delay: Delay) -> BodyDisposition? {
        switch delay {
        case .redirect(let left):
            if case .unreported(let verdict, _) = phase {
                phase = .unreported(verdict, .redirect(left: left - Int64(bytes.count)))
            }
            return left < bytes.count ? .stop : .consumed
        case .firstBytes(let decision):
            let first = gathered + bytes
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

    /// Makes room in the memory buffer for `more` bytes of a small body, and returns `nil`. If no memory is left,
    /// reports the response to the transfer, which writes it to a part file, or ends the response if its connection is
    /// shared.
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

    /// Reports a response to the transfer before its body is complete, so that the transfer decides how to handle it.
    ///
    /// - Parameter change: returns the verdict (how to handle the response) to report instead of that on the head.
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

    /// Returns the event that reports a response to the transfer together with its end. For a response that was held
    /// back because its head alone did not decide how to handle it; `delay` is the reason.
    func endReport(of verdict: ResponseVerdict, _ delay: Delay) -> Report {
        guard case .firstBytes(let decision) = delay else { return .answeredAndEnded(plan.id, verdict) }
        // Without all of its bytes, nothing is known about it.
        guard let framing else { return .ended(plan.id, resultOfEnd) }
        let told = decision.verdict(verdict, after: gathered)
        return .answeredAndEnded(plan.id, told.ending(at: Int64(gathered.count), isDelimited: framing == .delimited))
    }

    /// Returns the number of bytes of memory to reserve for the body of a response, if it is, or may be, a whole small
    /// file; `nil` if the body must be written to a part file as it arrives.
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

    /// The number of bytes of memory to reserve at first for a small file whose length the server does not send.
    private static let usualLength: Int64 = 16 << 10

    /// The result of an attempt whose body is still in memory, as its end alone determines it, before `conclude` writes
    /// the body.
    var resultOfEnd: AttemptResult { AttemptResult(end) }
}

/// The body in memory of a response that was reported as complete (`answeredAndEnded`). A storage can make a file of it
/// without a part file.
extension AttemptWriter: BufferedBody {
    /// Returns whether the complete file is in memory. Valid after the report `answeredAndEnded`: the response has
    /// ended.
    var holdsWhole: Bool { framing != nil && (Int64(gathered.count) == response.end || !response.hasLength) }

    /// The way in which the end of the body was recognized, such as its length; `nil` if the response was cut short.
    /// Valid after the report `answeredAndEnded`: the response has ended.
    var framing: AttemptEnd.Framing? { if case .complete(let framing) = end { framing } else { nil } }

    /// The body bytes in memory of a response that was reported as complete (`answeredAndEnded`). The caller drops its
    /// copy before `release`, because a buffer with two references would be copied when it is reused.
    var held: [UInt8] { gathered }

    func release() { buffers.give(&gathered) }

    func hold(_ bytes: [UInt8]) {
        gathered = bytes
        buffers.adopt(bytes)
    }
}
