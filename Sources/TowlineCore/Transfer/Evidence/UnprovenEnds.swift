/// The responses whose end is not proven, for example by a length: a cut body looks like a complete one. Another
/// response has to confirm the length.
struct UnprovenEnds: Sendable {
    /// The last response whose end is not proven (it may be cut); `nil` without one. Another response that ends at the
    /// same length confirms it.
    private(set) var last: Response?

    /// A response whose end is not proven (it may be cut), and which began with the first byte of the file.
    struct Response: Sendable {
        let length: Int64
        let representation: Representation?
        let framing: AttemptEnd.Framing
    }

    /// The number of responses of unknown length whose length no other response confirmed.
    private var count = 0

    /// The number of responses without a proven end, each with another length, after which the transfer fails.
    private static let most = 5

    /// Requests the file again after a response of unknown length without a proven end.
    ///
    /// - Parameters:
    ///   - hasChecksum: `true` if a checksum of the file is known.
    ///   - canJoin: `true` if there is proof to join new bytes to the written ones.
    /// - Returns: `nil` if the length counts: two responses ended there, or a checksum decides. No further response can
    ///   correct bytes written to a stream: over HTTP/2 the length counts; without close_notify, where anybody on the
    ///   path can cut the response, it does not.
    mutating func add(
        _ response: Response, from url: HTTPURL, hasChecksum: Bool, canJoin: Bool, _ terms: TransferTerms
    ) -> Reaction? {
        if terms.isStream {
            guard response.framing == .unclosed, terms.options.checksum == nil else { return nil }
            return Reaction([], .fail(.unprovenStream(url, response.length)))
        }
        guard last?.length != response.length else { return nil }
        count += 1
        last = response
        guard !hasChecksum else { return nil }
        guard count < Self.most else { return Reaction([], .fail(.differentLengths(url, count))) }
        let size = ByteCountText.format(response.length)
        let isHTTP2 = response.framing == .stream
        let how = isHTTP2 ? " (HTTP/2)" : " and ended TLS without a closing message (close_notify)"
        let reason =
            "the server ended the response after \(size) and did not send the length of the file\(how),"
            + " so another request\(isHTTP2 ? ", over HTTP/1.1," : "") has to confirm the length"
        return canJoin
            ? Reaction([.notice(TransferNotice(.info, .retrying, reason))])
            : Reaction([], .startOver(Restart(reason: reason)))
    }

    /// Forgets the responses, because the last one is accepted as the file.
    mutating func forget() { (last, count) = (nil, 0) }

    /// Returns the restart after a checksum mismatch of a response whose end was not proven: it may have been cut.
    ///
    /// - Parameters:
    ///   - length: the length of the file with the mismatch.
    ///   - restarts: the number of earlier restarts of the transfer.
    /// - Returns: `nil` if the end was proven, or if the transfer has already started over.
    func restart(of length: Int64?, restarts: Int) -> Reaction? {
        guard let last, last.length == length, restarts == 0 else { return nil }
        let reason = "the downloaded file does not match its checksum, probably because the response was cut"
        return Reaction([], .startOver(Restart(reason: reason, areBytesWrong: true)))
    }
}
