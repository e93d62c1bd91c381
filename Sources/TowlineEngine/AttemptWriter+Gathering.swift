internal import TowlineCore

/// Answers that are told of once, when all of them has come.
extension AttemptWriter {
    func endIsLate() {
        // A stream without a length may be small. It has its time, and does not continue beyond that.
        if !plan.sharesConnection || hasLength { tell() }
    }

    /// True if the head says where the response ends, or nobody wants the response.
    var hasLength: Bool { drainable != nil || responseEnd < .max }

    /// The room for an answer that is a whole small file, or may be, and may be held.
    func gatherable(_ verdict: ResponseVerdict, _ head: ResponseHead) -> Int64? {
        let length: Int64?
        switch verdict {
        case .partial(let range, let facts):
            let isWhole = range.lowerBound == 0 && range.upperBound == facts.representation.completeLength
            length = isWhole ? range.upperBound : nil
        case .whole(let facts):
            // Of chunks and streams nobody knows before they end.
            let mayBeSmall = facts.isChunked || head.version == .http2
            length = facts.representation.completeLength ?? (mayBeSmall ? Self.usualLength : nil)
        default: length = nil
        }
        guard mayGather, !awaitsFirstByte, let length, length <= SmallFilePolicy.mostHeld(of: plan) else { return nil }
        return length
    }

    /// Room for what has no length.
    private static let usualLength: Int64 = 16 << 10

    /// Whether it leads elsewhere with a body that is read to its end: what follows may go over the same connection.
    func isDrainedRedirect(_ verdict: ResponseVerdict) -> Bool {
        guard case .redirect = verdict else { return false }
        return mayGather && drainable != nil
    }

    /// Whether it is a long answer, over HTTP/2. Asked by whom something of it was reported to.
    var isLongStream: Bool { isStream && promise == .long }

    /// The result of an answer that was delivered, before its bytes are written.
    var deliveredResult: AttemptResult { AttemptResult(deliveredEnd) }
}

extension AttemptWriter: HeldBytes {
    /// Whether all of a file is held in memory. Asked by whom `delivered` was reported to.
    var holdsWhole: Bool {
        guard framing != nil else { return false }
        return Int64(gathered.count) == responseEnd || responseEnd == .max
    }

    /// What told the end of an answer that was delivered; `nil`: it broke off.
    var framing: AttemptEnd.Framing? { if case .complete(let framing) = deliveredEnd { framing } else { nil } }

    /// The bytes of an answer that was delivered. Asked by whom that was reported to; what it gets is let go of before
    /// `release`.
    var held: [UInt8] { gathered }

    func release() { buffers.give(&gathered) }

    func hold(_ bytes: [UInt8]) {
        gathered = bytes
        buffers.adopt(bytes)
    }
}
