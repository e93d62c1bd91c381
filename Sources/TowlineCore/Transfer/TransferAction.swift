/// An action of the state machine. The runner performs the actions in order.
package enum TransferAction: Hashable, Sendable {
    /// Send a request.
    case start(AttemptPlan)
    /// End an attempt; its `ended` event still follows.
    case cancel(AttemptID)
    /// Make an attempt stop at `end` instead of its lease's end.
    case shrink(AttemptID, end: Int64)
    /// Make an attempt wait at an offset for at most that time: another connection may deliver the bytes after it.
    /// `.max`: the attempt does not wait.
    case hold(AttemptID, at: Int64, for: Duration)
    /// Accept a paused response: write its body.
    case proceed(AttemptID)
    /// Create the part file and journal, or their next generation; `prepared` or `storageFailed` follows.
    case prepare(PreparePlan)
    /// Store the representation and checksums of the file in the journal.
    case learn(Representation, [Checksum])
    /// Remove written bytes from the journal.
    case withdraw(ByteRange)
    /// Compute and compare the checksums; `verified` or `storageFailed` follows.
    case verify([Checksum], length: Int64)
    /// Keep the wrong file as `NAME.tow-bad`; the error in `finish` names the path.
    case setAside
    /// Publish the file; `published` or `storageFailed` follows.
    case publish(length: Int64, modified: HTTPDate?)
    /// Notify the user.
    case notice(TransferNotice)
    /// Report to all downloads of this host.
    case report(HostReport, of: HTTPURL.Origin)
    /// End the transfer.
    case finish(TransferEnding)
}

/// An observation about a host.
package enum HostReport: Hashable, Sendable {
    /// The host requested a pause of this duration.
    case leaveAlone(Duration)
    /// The host is overloaded by requests.
    case overloaded
    /// The host allows at most this number of connections.
    case connections(Int)
    /// More connections than this number do not increase the rate.
    case paysOff(Int)
    /// A stream of a shared connection stalled, or the host wants fewer streams.
    case sharingFailed

    /// Returns whether the host asks for fewer requests, so that no additional connections are tried.
    package var asksForLess: Bool {
        switch self {
        case .overloaded, .connections: true
        case .leaveAlone, .paysOff, .sharingFailed: false
        }
    }
}

/// The result of a transfer.
package enum TransferEnding: Hashable, Sendable {
    /// The file is published.
    case finished
    /// The server has the same version as the existing file.
    case upToDate
    /// The transfer failed. Bytes that may be reused are kept.
    case failed(TowlineError)
    /// The user stopped the transfer; all bytes are kept.
    case stopped
}

/// A plan for creating a part file.
package struct PreparePlan: Hashable, Sendable {
    /// The representation that the bytes belong to.
    package var representation: Representation
    /// The file name that the server or the URL gives.
    package var fileName: String
    /// The checksums known so far.
    package var checksums: [Checksum]
    /// `true` if the new part file replaces an existing one, with the next generation number.
    package var isReplacement: Bool
    /// The URL that responded.
    package var resolved: HTTPURL
    /// `true` if the server does not support range requests for the file.
    package var lacksRanges: Bool
}

/// A plan for one attempt: the request to send, and the offsets of its bytes in the file.
package struct AttemptPlan: Hashable, Sendable {
    /// The identifier of the attempt.
    package var id: AttemptID
    /// The URL to request.
    package var url: HTTPURL
    /// The header fields of the request.
    package var fields: HTTPFields
    /// `true` if the request may carry the user's credentials.
    package var sendsCredentials: Bool
    /// `true` if the request may carry the password of a netrc entry that names its host.
    package var sendsNetrc = true
    /// `true` if the request may carry the cookies for its URL from the user's file.
    package var sendsStoredCookies = true
    /// The facts for evaluating the response.
    package var question: ResponseQuestion
    /// The bytes assigned to the attempt; the end is `Int64.max` while unknown.
    package var lease: ByteRange
    /// The number of bytes before the lease that are requested again and compared.
    package var overlap: Int64
    /// `true` if the body of a matching 206 may be written at once, without waiting for `proceed`.
    package var joinsDirectly: Bool
    /// The earlier URLs in this chain of redirects.
    package var chain: [HTTPURL]
    /// `true` if the attempt checks whether a change of the file is real.
    package var isConfirmation: Bool
    /// `true` if the attempt races another one for the same bytes.
    package var isRace: Bool
    /// `true` if other attempts run. The first written bytes are reported, because other attempts may stop then.
    package var isFurther = false
    /// The source of the bytes.
    package var source = SourceID.primary
    /// The way in which the request shares its connection. A shared connection is used for small files only.
    package var sharing = ConnectionSharing.none

    /// Returns whether the response may be a whole file that has no part file yet.
    package var mayBringWhole: Bool {
        !joinsDirectly && lease.lowerBound == 0 && overlap == 0 && !(question.asked == .whole && question.known != nil)
    }
    /// Returns whether other requests may be streams of the same connection.
    package var sharesConnection: Bool { sharing != .none }
    /// The bytes before the lease that are requested again and compared.
    package var seam: ByteRange { ByteRange(lease.lowerBound - overlap, lease.lowerBound) }
    /// Returns whether the attempt writes nothing, and only compares the received bytes with written ones.
    package var isComparison: Bool { lease.isEmpty }
}
