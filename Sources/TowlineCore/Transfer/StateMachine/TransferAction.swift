/// An action that the state machine of a transfer requests, such as sending a request or creating the part file. The
/// engine (`TransferRun`) performs the actions in order.
package enum TransferAction: Hashable, Sendable {
    /// Send the request that the plan describes.
    case start(AttemptPlan)
    /// Cancel an attempt; the event `ended` still follows.
    case cancel(AttemptID)
    /// Make an attempt stop at the offset `end` instead of the end of the range that its plan assigned (`lease`).
    case shrink(AttemptID, end: Int64)
    /// Make an attempt pause at an offset for at most the given time: another connection may deliver the bytes after
    /// it. Offset `.max`: the attempt does not pause.
    case hold(AttemptID, at: Int64, for: Duration)
    /// Accept the response to an attempt that is paused after its head: write its body to the part file.
    case proceed(AttemptID)
    /// Create the part file and the journal, or new ones that replace them; `prepared` or `storageFailed` follows.
    case prepare(PreparePlan)
    /// Store the representation and checksums of the file in the journal.
    case learn(Representation, [Checksum])
    /// Remove written bytes from the journal: they may be wrong, and are downloaded again.
    case withdraw(ByteRange)
    /// Remove the earlier part file: the present one has as many bytes, or the disk is full.
    case removeEarlier
    /// Discard the present part file and open the earlier one; `begin` follows. `isOpen`: the part file is still the
    /// earlier one, because no new one was created.
    case resumeEarlier(isOpen: Bool)
    /// Store in the journal that the part file is its own, although the inode number differs: its bytes are proven.
    case adoptPart
    /// Compute the checksums of the written file of this length and compare them; `verified` or `storageFailed`
    /// follows.
    case verify([Checksum], length: Int64)
    /// Keep the part file with the wrong checksum as `NAME.tow-bad`; the error in `finish` names the path.
    case setAside
    /// Give the complete file its final name, and the modification time that the server sent (`nil`: none sent);
    /// `published` or `storageFailed` follows.
    case publish(length: Int64, modified: HTTPDate?)
    /// Show a notice to the user.
    case notice(TransferNotice)
    /// Report an observation about a host to all downloads from this host.
    case report(HostReport, of: HTTPURL.Origin)
    /// End the transfer with the given result.
    case finish(TransferEnding)
}

/// An observation of one transfer about a host, which affects all downloads from this host.
package enum HostReport: Hashable, Sendable {
    /// The host requested a pause of this duration (`Retry-After`): no download sends a request to it until then.
    case leaveAlone(Duration)
    /// The host refused a request because it receives too many.
    case overloaded
    /// The host allows at most this number of connections at the same time.
    case connections(Int)
    /// More connections than this number do not increase the rate. Later downloads from the host begin with this
    /// number.
    case paysOff(Int)
    /// A stream of a shared connection stalled, or the host wants fewer streams: for a while, each request gets a
    /// connection of its own.
    case sharingFailed

    /// Returns whether the host asks for fewer requests, so that no additional connections are tried.
    package var asksForLess: Bool {
        switch self {
        case .overloaded, .connections: true
        case .leaveAlone, .paysOff, .sharingFailed: false
        }
    }
}

/// The result with which a transfer ends.
package enum TransferEnding: Hashable, Sendable {
    /// The file is complete and has its final name.
    case finished
    /// The server has the same version as the existing file, which is kept.
    case upToDate
    /// The transfer failed. Bytes that may be reused are kept.
    case failed(TowlineError)
    /// The user stopped the transfer; all bytes are kept.
    case stopped
}

/// A plan for creating a part file and its journal.
package struct PreparePlan: Hashable, Sendable {
    /// The metadata of the file on the server, such as its length and validators.
    package var representation: Representation
    /// The file name that the server or the URL gives.
    package var fileName: String
    /// The checksums of the whole file known so far.
    package var checksums: [Checksum]
    /// `true` if the new part file replaces an existing one. The next generation number of the content then
    /// distinguishes it from the old one.
    package var isReplacement: Bool
    /// `true` if the replaced part file becomes the earlier one, which stays.
    package var keepsReplaced = false
    /// The URL that responded, at the end of all redirects.
    package var resolved: HTTPURL
    /// `true` if the server does not support range requests for the file.
    package var lacksRanges: Bool
}

/// The plan of one attempt: the request to send, and the bytes of the file to write.
package struct AttemptPlan: Hashable, Sendable {
    /// The identifier of the attempt.
    package var id: AttemptID
    /// The URL to send the request to.
    package var url: HTTPURL
    /// The header fields of the request.
    package var fields: HTTPFields
    /// `true` if the request may carry the user's credentials.
    package var sendsCredentials: Bool
    /// `true` if the request may carry the password of a netrc entry that names its host.
    package var sendsNetrc = true
    /// `true` if the request may carry the cookies for its URL from the user's cookie file.
    package var sendsStoredCookies = true
    /// The requested bytes, and the known length and validators of the file, with which the response is evaluated.
    package var question: ResponseQuestion
    /// The bytes of the file that the attempt is to write; the end is `Int64.max` while the length is unknown.
    package var lease: ByteRange
    /// The number of bytes before `lease` (the bytes to write) that are requested again and compared with the written
    /// ones.
    package var overlap: Int64
    /// `true` if the body of a matching 206 may be written immediately, without waiting for the action `proceed`.
    package var joinsDirectly: Bool
    /// The URLs that redirected to `url`, in order.
    package var chain: [HTTPURL]
    /// `true` if the attempt checks whether the file really changed on the server, as another response claimed.
    package var isConfirmation: Bool
    /// `true` if the attempt downloads bytes that are also assigned to a slower attempt. The first one to deliver them
    /// wins.
    package var isRace: Bool
    /// `true` if other attempts run. The first written bytes are reported, because other attempts may stop then.
    package var isFurther = false
    /// The source of the requested bytes: the primary URL or a mirror.
    package var source = SourceID.primary
    /// The way in which the request shares its connection. A shared connection is used for small files only.
    package var sharing = ConnectionSharing.none

    /// Returns whether the response may be a whole file that has no part file yet. If it is small, its bytes may be
    /// collected in memory first.
    package var mayBringWhole: Bool {
        !joinsDirectly && lease.lowerBound == 0 && overlap == 0 && !(question.asked == .whole && question.known != nil)
    }
    /// Returns whether other requests may use the same connection at the same time, each as a separate stream.
    package var sharesConnection: Bool { sharing != .none }
    /// The bytes before `lease` (the bytes to write) that are requested again and compared with the written ones.
    package var seam: ByteRange { ByteRange(lease.lowerBound - overlap, lease.lowerBound) }
    /// Returns whether the attempt writes nothing, and only compares the received bytes with written ones.
    package var isComparison: Bool { lease.isEmpty }
}
