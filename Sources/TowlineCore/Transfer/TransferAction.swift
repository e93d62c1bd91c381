/// What the runner is to do, in order.
package enum TransferAction: Hashable, Sendable {
    /// Send a request.
    case start(AttemptPlan)
    /// End an attempt; its `ended` event still comes.
    case cancel(AttemptID)
    /// The attempt stops at `end` instead of its lease's end.
    case shrink(AttemptID, end: Int64)
    /// The attempt waits at an offset for at most that time: another connection may bring what follows. `.max`:
    /// nowhere.
    case hold(AttemptID, at: Int64, for: Duration)
    /// The paused answer is wanted: write its body.
    case proceed(AttemptID)
    /// Create part file and journal, or the next generation of them; `prepared` or `storageFailed` follows.
    case prepare(PreparePlan)
    /// Store what was learned.
    case learn(Representation, [Checksum])
    /// Take claims back.
    case withdraw(ByteRange)
    /// Compute and compare; `verified` or `storageFailed` follows.
    case verify([Checksum], length: Int64)
    /// Keep the wrong file as `NAME.tow-bad`; the error of the end names the path.
    case setAside
    /// Give the file its name; `published` or `storageFailed` follows.
    case publish(length: Int64, modified: HTTPDate?)
    /// Tell the user.
    case notice(TransferNotice)
    /// Tell all downloads of this host.
    case report(HostReport, of: HTTPURL.Origin)
    /// The transfer is over.
    case finish(TransferEnding)
}

/// What was learned of a host.
package enum HostReport: Hashable, Sendable {
    /// It wants to be left alone for so long.
    case leaveAlone(Duration)
    /// It is asked for too much.
    case overloaded
    /// It allows no more connections than that.
    case connections(Int)
    /// More connections than that bring no more bytes.
    case paysOff(Int)
    /// A stream of a connection that several share stood still, or the host wants fewer of them.
    case sharingFailed

    /// Whether it is no host of which more connections are tried.
    package var asksForLess: Bool {
        switch self {
        case .overloaded, .connections: true
        case .leaveAlone, .paysOff, .sharingFailed: false
        }
    }
}

/// How a transfer ended.
package enum TransferEnding: Hashable, Sendable {
    /// The file is there.
    case finished
    /// The server has the version of the existing file.
    case upToDate
    /// It failed; what is worth keeping is kept.
    case failed(TowlineError)
    /// The user stopped it; everything is kept.
    case stopped
}

/// How to create a part file.
package struct PreparePlan: Hashable, Sendable {
    /// What its bytes are of.
    package var representation: Representation
    /// The name the server or the URL gives.
    package var fileName: String
    /// Checksums known so far.
    package var checksums: [Checksum]
    /// A part file is there already, and this one takes its place with the next generation number.
    package var isReplacement: Bool
    /// The URL that answered.
    package var resolved: HTTPURL
    /// The server gives no ranges of it.
    package var lacksRanges: Bool
}

/// One attempt: what to send, and where its bytes belong.
package struct AttemptPlan: Hashable, Sendable {
    /// Its name.
    package var id: AttemptID
    /// Where to ask.
    package var url: HTTPURL
    /// What to send.
    package var fields: HTTPFields
    /// Whether the user's credentials may go there.
    package var sendsCredentials: Bool
    /// The request may carry the password of a netrc entry that names its host.
    package var sendsNetrc = true
    /// The request may carry the cookies of the user's file that are for its URL.
    package var sendsStoredCookies = true
    /// What the answer is judged by.
    package var question: ResponseQuestion
    /// The bytes it is to bring; the end is `Int64.max` while unknown.
    package var lease: ByteRange
    /// So many bytes before the lease are asked for again and compared.
    package var overlap: Int64
    /// Whether a matching 206 may be written at once, without waiting for `proceed`.
    package var joinsDirectly: Bool
    /// The URLs that led here, in this chain of redirects.
    package var chain: [HTTPURL]
    /// Whether this attempt asks if a change is real.
    package var isConfirmation: Bool
    /// Whether it races another for the same bytes.
    package var isRace: Bool
    /// True if other attempts run. Its first written bytes are reported, because others may stop then.
    package var isFurther = false
    /// Who is asked.
    package var source = SourceID.primary
    /// Whether it has a connection to itself. Of what has not, nothing but a small file may come.
    package var sharing = ConnectionSharing.none

    /// Whether its answer may be all of a file for which there is no place yet.
    package var mayBringWhole: Bool {
        !joinsDirectly && lease.lowerBound == 0 && overlap == 0 && !(question.asked == .whole && question.known != nil)
    }
    /// Whether others may be streams of its connection.
    package var sharesConnection: Bool { sharing != .none }
    /// The bytes before the lease that are asked for again and compared.
    package var seam: ByteRange { ByteRange(lease.lowerBound - overlap, lease.lowerBound) }
    /// Whether it brings nothing, and only compares what comes with what is there.
    package var isComparison: Bool { lease.isEmpty }
}
