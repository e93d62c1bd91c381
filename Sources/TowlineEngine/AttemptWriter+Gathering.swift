internal import TowlineCore

/// Responses whose head is reported only when the body is complete, because the body is small.
extension AttemptWriter {
    func bodyDeadlinePassed() {
        // On a shared connection, a stream without a length may still be small. It is held until it ends or is too
        // long.
        if !plan.sharesConnection || hasLength { tell() }
    }

    /// Returns whether the head contains the length of the body, or the body is not wanted.
    var hasLength: Bool { drainable != nil || responseEnd < .max }

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
        guard mayGather, !awaitsFirstByte, let length, length <= SmallFilePolicy.mostHeld(of: plan) else { return nil }
        return length
    }

    /// The number of bytes of memory to reserve for a body of unknown length.
    private static let usualLength: Int64 = 16 << 10

    /// Returns whether a response is a redirect whose body is read to its end, so that the next request may use the
    /// same connection.
    func isDrainedRedirect(_ verdict: ResponseVerdict) -> Bool {
        guard case .redirect = verdict else { return false }
        return mayGather && drainable != nil
    }

    /// Returns whether the response came over HTTP/2 and is not a small file. Valid after a report.
    var isLongStream: Bool { isStream && promise == .long }

    /// The result of an attempt that was reported as `delivered`, before `conclude` writes its bytes.
    var deliveredResult: AttemptResult { AttemptResult(deliveredEnd) }
}

extension AttemptWriter: BufferedBody {
    /// Returns whether the complete file is in memory. Valid after the report `delivered`.
    var holdsWhole: Bool {
        guard framing != nil else { return false }
        return Int64(gathered.count) == responseEnd || responseEnd == .max
    }

    /// The way in which the end of the body of a `delivered` response was recognized; `nil` if the response was cut
    /// short.
    var framing: AttemptEnd.Framing? { if case .complete(let framing) = deliveredEnd { framing } else { nil } }

    /// The bytes of a `delivered` response. A reader drops its copy before `release`.
    var held: [UInt8] { gathered }

    func release() { buffers.give(&gathered) }

    func hold(_ bytes: [UInt8]) {
        gathered = bytes
        buffers.adopt(bytes)
    }
}
