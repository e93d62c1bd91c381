import TowlineCore
import TowlineEngine

/// The remaining follow-ups of one finished download: the next one, and the changes of the registry after its end.
struct FollowUpSequence {
    private let followUps: [FollowUp]
    private let endedAt: Int64?
    private let clock: any DownloadClock
    private var state: FollowUpState
    /// The finished file. Its path changes when a follow-up action moves it.
    private(set) var file: FinishedFile

    /// Creates the sequence of remaining follow-ups from the entry of a download in the registry; `nil` if the download
    /// is not finished or no follow-up is to run.
    init?(_ record: RegisteredDownload, clock: any DownloadClock = SystemClock()) {
        state = FollowUpState(code: record.reasonCode, reason: record.reason)
        guard record.state == .finished, case .running = state else { return nil }
        let request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        followUps = request.followUps
        file = FinishedFile(
            id: record.id, path: Place(directory: record.directory, name: record.name ?? "").path,
            source: DownloadSnapshot(record).source, length: record.completeLength ?? record.heldBytes,
            endedAt: record.endedAt ?? record.addedAt, checksum: request.checksum)
        endedAt = record.endedAt
        self.clock = clock
    }

    /// The follow-up to perform now; `nil` if all follow-ups are complete or one failed.
    var next: FollowUp? { number.map { followUps[$0] } }

    private var number: Int? {
        guard case .running(let number) = state, number < followUps.count else { return nil }
        return number
    }

    /// Records that the follow-up `next` is complete, and returns the change to write to the registry.
    ///
    /// - Parameter path: the new path of the file if the follow-up moved the file; `nil` otherwise.
    mutating func complete(movedTo path: String?) -> RegistryChange {
        var change = RegistryChange(file.id)
        if let path {
            file.path = path
            change.setPlace(Place(path: path))
        }
        if let number {
            let message = "the follow-up action is complete: \(followUps[number].title)"
            change.note("follow-up", message, at: clock.milliseconds)
            state = number + 1 == followUps.count ? .done : .running(number + 1)
        }
        setState(of: &change)
        return change
    }

    /// Records that the follow-up `next` failed, and returns the change to write to the registry.
    mutating func fail(_ error: TowlineError) -> RegistryChange {
        var change = RegistryChange(file.id)
        if let number { state = .failed(number, error.message) }
        change.note("follow-up-failed", error.message, at: clock.milliseconds)
        setState(of: &change)
        return change
    }

    /// Adds the new state of the follow-ups to a change of the registry. The change has no effect if the download was
    /// restarted or removed meanwhile.
    private func setState(of change: inout RegistryChange) {
        var reason: String?
        if case .failed(_, let message) = state { reason = message }
        let stored: RegisteredState = reason == nil ? .finished : .followUpFailed
        change.state = .init(stored, reason: reason, reasonCode: state.code, endedAt: endedAt)
        change.onlyFrom = .finished
    }
}

extension Place {
    /// Creates a destination, the directory and the file name, from the absolute path of a file.
    init(path: String) {
        let parts = path.split(separator: "/")
        self.init(directory: "/" + parts.dropLast().joined(separator: "/"), name: parts.last.map(String.init) ?? "")
    }
}
