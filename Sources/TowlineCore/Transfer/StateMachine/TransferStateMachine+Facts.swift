/// Values that the engine (`TransferRun`) reads to perform the actions of the state machine and to share hosts with
/// other transfers: the written bytes, waits, connections and hosts.
extension TransferStateMachine {
    /// Returns the time until the next attempt, or until silent responses are cut; `nil` unless the transfer waits.
    package func wait(now: Duration) -> Duration? {
        guard case .waiting = DownloadState(of: self, now: now) else { return nil }
        if awaitsSilentServer { return work.live.map { $0.lastProgressAt + terms.patientTimeout - now }.max() }
        return max(.zero, (sources.nextTry(canUseMirrors: mirrorRung != nil) ?? now) - now)
    }

    /// `true` while all running responses are silent, and are not cut because their bytes would be lost.
    package var awaitsSilentServer: Bool {
        phase == .running && work.liveCount > 0 && work.live.allSatisfy(\.rates.isSilent)
    }
    /// The written bytes, and the ranges assigned to the running attempts.
    package var ledger: RangeLedger { work.ledger }
    /// The number of received bytes, including bytes that were requested again for comparison.
    package var receivedBytes: Int64 { work.pace.receivedBytes }
    /// `true` while the transfer waits for its slot in a batch, or for permission to open a connection of its own.
    package var waitsForTurn: Bool { work.waitsForTurn }
    /// `true` if the file is not small, or stalled on a shared connection: its requests get a connection of their own.
    package var needsOwnConnection: Bool { work.needsOwnConnection }
    /// `true` if the server requested the transfer's current wait (`Retry-After`).
    package var waitsForServer: Bool { patience.waitsForServer }
    /// The file that an update may replace; `nil` once a response shows another version of the file.
    package var existing: ExistingFile? {
        get { evidence.existing }
        set { evidence.existing = newValue }
    }
    /// The version of the file in the earlier part file; `nil` without one.
    package var earlier: HeldVersion? {
        get { evidence.part.earlier }
        set { evidence.part.earlier = newValue }
    }
    /// The hosts of the mirrors, in the order of the mirrors.
    package var mirrorOrigins: [HTTPURL.Origin] { sources.mirrorOrigins }
    /// Returns the range that an attempt writes unless it is stopped: from the next byte of its assigned range to the
    /// end of its response; `nil` if no range is assigned to it.
    package func response(of id: AttemptID) -> ByteRange? { work.response(of: id) }
    /// Returns the host that currently sends bytes for the source that defines the file; `nil` if no host does.
    package func activeHost(now: Duration) -> HTTPURL.Origin? { work.activeHost(now: now) }
}
