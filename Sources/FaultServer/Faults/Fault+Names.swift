extension Fault {
    /// The faults by name; faults with arguments use their default arguments.
    package static let all: [String: Fault] = {
        let faults = connectionFaults + framingFaults + rangeFaults + representationFaults + statusFaults
        return Dictionary(faults.map { ($0.name, $0) }) { first, _ in first }
    }()

    private static let connectionFaults: [Fault] = [
        closeBeforeHead, resetBeforeHead, stallBeforeHead, resetAfterHead, resetAfter(), stall(), stallAfterHead,
        slowHead(), slowBody(), endlessHead, hugeHead(), endlessFieldLine, endlessInterim, http09, garbageStatusLine,
        status999, connectionLimit(1), connectionLimitByReset(1), closeWithoutNotify(), resetStream(), refusedStream,
        goAway(), goAwayAtOnce,
    ]

    private static let framingFaults: [Fault] = [
        shortBody(), surplus(), chunked(), noLastChunk, cutChunked(), negativeChunkSize, overflowingChunkSize,
        garbageChunkSize, hugeChunkExtension, bothLengths, repeatedContentLength, differingContentLengths,
        negativeContentLength, overflowingContentLength, closeDelimited, closeDelimitedWhole, cutCloseDelimited(),
    ]

    private static let rangeFaults: [Fault] = [
        ignoresRange, partWith200, unlabelledPartWith200, claimsRanges, deniesRanges, startsLater(), startsAtZero,
        shiftedBytes(),
        endsLater(),
        endsBeyondTotal, shorterRange(), noContentRange, garbageContentRange, otherUnit, negativeContentRange,
        backwardContentRange, overflowingContentRange, otherTotal(), unknownTotal, chunkedStartsLater(), multipart,
        unaskedPart, unsatisfiablePage, refusesRange(404), closesOnRange, cutWithoutRanges(),
    ]

    private static let representationFaults: [Fault] = [
        weakETag, noValidator, lastModifiedIsDate, noDate, alternatingETags, otherContent(), sameETagOtherBytes(),
        noValidatorOtherBytes(), ignoresRangeOfOtherContent(), otherPart(), grown(), codedPart, page, pageWithETag,
        empty, wrongReprDigest, unquotedETag, dateWithOffset, tagOfEachConnection, tagOfEachConnectionBy206,
    ]

    private static let statusFaults: [Fault] = [
        unavailable, forbidden, notFound, gone, noContent, unaskedNotModified, retryAfterGarbage, retryAfterHuge,
        redirectNowhere, redirectLoop, endlessRedirects, proxyAuthenticationRequired,
    ]
}
