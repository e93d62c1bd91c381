import Foundation
import TowlineCore
import TowlineEngine

extension DownloadSnapshot {
    /// Creates the snapshot of a new download from its request. Throws the error of the first invalid value.
    package init(adding request: DownloadRequest, as id: DownloadID) throws(TowlineError) {
        self.init(try RegisteredDownload(id, request, at: SystemClock().milliseconds))
    }

    /// Creates the snapshot of a download that does not run from its entry in the registry, the database of all
    /// downloads.
    init(_ record: RegisteredDownload) {
        id = record.id
        source = (try? HTTPURL(parsing: record.source).withoutSecrets) ?? record.host
        directory = record.directory
        name = record.name
        completeLength = record.completeLength
        heldBytes = record.heldBytes
        receivedBytes = 0
        connections = 0
        canPauseWithoutLoss = true
        priority = record.priority
        group = record.group
        metadata = record.metadata
        addedAt = Date(milliseconds: record.addedAt)
        endedAt = record.endedAt.map { Date(milliseconds: $0) }
        reason = record.reason
        waitsUntil = nil
        followUp = .none
        error = nil
        state = .queued
        switch record.state {
        case .queued: break
        // The process that ran the download has ended. The download is queued and resumes later.
        case .active: reason = nil
        case .waiting:
            state = .waiting(WaitCode(rawValue: record.reasonCode ?? "")?.reason ?? .network)
            waitsUntil = record.waitUntil.map { Date(milliseconds: $0) }
        case .paused: state = .paused
        case .finished, .followUpFailed:
            state = .finished
            followUp = FollowUpState(code: record.reasonCode, reason: record.reason)
        case .failed:
            state = .failed
            error = TowlineError(storedCode: record.reasonCode, message: record.reason, status: record.status)
        case .cancelled: state = .cancelled
        }
    }

    /// Creates the snapshot of a download that does not run from its entry in the registry and the newer summary of its
    /// journal; `nil` if the download has no journal.
    init(_ record: RegisteredDownload, _ journal: JournalSummary?) {
        self.init(record)
        guard record.state.mayHaveJournal else { return }
        guard let journal else {
            // Without a journal, no bytes are kept. Only an active small file has bytes and no journal.
            if record.state != .active { heldBytes = 0 }
            return
        }
        heldBytes = journal.heldBytes
        completeLength = journal.completeLength ?? completeLength
        name = journal.name
    }

    /// Creates the snapshot of a running download from its entry in the registry, the newer snapshot of its transfer,
    /// and the end of the transfer's wait.
    init(_ record: RegisteredDownload, _ transfer: TransferSnapshot, waitsUntil: Date?) {
        self.init(record)
        state = transfer.state
        error = nil
        name = transfer.name ?? record.name
        completeLength = transfer.completeLength
        heldBytes = transfer.heldBytes
        receivedBytes = transfer.receivedBytes
        rate = transfer.rate
        remaining = transfer.remaining
        connections = transfer.connections
        canPauseWithoutLoss = transfer.startsOverBecause == nil || transfer.heldBytes == 0
        reason = transfer.wait?.reason
        self.waitsUntil = waitsUntil
    }
}

/// The reason why a download waits. The registry, the database of all downloads, stores the raw value.
enum WaitCode: String {
    case network, diskSpace, server, retry, destination

    /// `true` if the reason is the local disk, not the network or the server.
    var isLocal: Bool { self == .diskSpace || self == .destination }

    var reason: DownloadState.WaitReason {
        switch self {
        case .network: .network
        case .diskSpace: .diskSpace
        case .server: .server
        case .retry: .retry
        case .destination: .destination
        }
    }
}

extension TowlineError {
    /// Creates an error from the values that the registry stores: the property `storedCode`, the message and the HTTP
    /// status. If the code is `nil` or unknown, it is `transient`.
    init(storedCode: String?, message: String?, status: Int?) {
        let words = storedCode?.split(separator: " ").map(String.init) ?? []
        self.init(
            Code(name: words.first ?? "") ?? .transient,
            message ?? "the download failed for an unknown reason. Retry the download", status: status,
            networkFailure: words.dropFirst().first.flatMap { NetworkFailure(name: $0) })
    }

    /// The code of the error and its network failure, as the text that the registry stores as the reason code of a
    /// failed download.
    var storedCode: String { networkFailure.map { "\(code) \($0)" } ?? code.description }
}

extension FollowUpState {
    /// Creates a state from the two texts that the registry stores: the value of the property `code`, and the error
    /// message of a failed follow-up. If `code` is `nil` or unknown, the state is `none`.
    init(code: String?, reason: String?) {
        let words = code?.split(separator: " ") ?? []
        switch (words.first, words.last.flatMap { Int($0) }) {
        case ("next", let number?): self = .running(number)
        case ("failed", let number?):
            let unknown =
                "the follow-up action (such as unpacking) failed for an unknown reason. "
                + "Retry the download to run only this action again"
            self = .failed(number, reason ?? unknown)
        case ("done", _): self = .done
        default: self = .none
        }
    }

    /// The state as the text that the registry stores as the reason code of a finished download; `nil` if the download
    /// has no follow-ups.
    var code: String? {
        switch self {
        case .none: nil
        case .running(let number): "next \(number)"
        case .done: "done"
        case .failed(let number, _): "failed \(number)"
        }
    }
}
