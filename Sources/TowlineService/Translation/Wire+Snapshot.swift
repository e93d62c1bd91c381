internal import Foundation
internal import Towline
import TowlineWire

extension Wire.Download {
    init(_ snapshot: DownloadSnapshot) {
        self.init(
            id: snapshot.id.description, url: snapshot.source, directory: snapshot.directory,
            state: Wire.State(snapshot.state), addedAt: snapshot.addedAt.milliseconds)
        name = snapshot.name
        reason = snapshot.reason
        if case .waiting(let reason) = snapshot.state { waitsFor = reason.rawValue }
        waitsUntil = snapshot.waitsUntil?.milliseconds
        error = snapshot.error.map {
            Wire.Failure(
                code: $0.code.description, message: Self.message(of: $0), httpStatus: $0.status,
                networkFailure: $0.networkFailure?.description)
        }
        completeLength = snapshot.completeLength
        heldBytes = snapshot.heldBytes
        receivedBytes = snapshot.receivedBytes
        rate = snapshot.rate.flatMap { Int64(exactly: $0.rounded()) }
        remaining = snapshot.remaining?.components.seconds
        connections = snapshot.connections
        priority = snapshot.priority
        group = snapshot.group
        metadata = snapshot.metadata
        endedAt = snapshot.endedAt?.milliseconds
        if !snapshot.canPauseWithoutLoss { canPauseWithoutLoss = false }
        guard snapshot.state == .finished else { return }
        followUp = Wire.FollowUp(snapshot.followUp)
        if case .failed = snapshot.followUp { state = .followUpFailed }
    }

    /// Returns the message of an error. For a refused address, it names the setting of the service.
    private static func message(of error: TowlineError) -> String {
        guard error.code == .addressRefused else { return error.message }
        return error.message + ". The setting private-addresses of towd does not allow this client to use private "
            + "addresses; 'private-addresses: everybody' allows it"
    }

    /// Adds the fields that lists omit: the rate limit and the mirrors.
    init(_ snapshot: DownloadSnapshot, of request: DownloadRequest) {
        self.init(snapshot)
        rateLimit = request.rateLimit.flatMap { $0 > 0 ? $0 : nil }
        guard !request.mirrors.isEmpty else { return }
        mirrors = request.mirrors.compactMap { try? HTTPURL(parsing: $0.absoluteString).withoutSecrets }
    }
}

extension Wire.State {
    init(_ state: DownloadState) {
        self =
            switch state {
            case .queued: .queued
            case .connecting: .connecting
            case .downloading: .downloading
            case .verifying: .verifying
            case .publishing: .publishing
            case .finished: .finished
            case .paused: .paused
            case .waiting: .waiting
            case .failed: .failed
            case .cancelled: .cancelled
            }
    }
}

extension Wire.FollowUp {
    init(_ state: FollowUpState) {
        // Both types have `none` and `done`: name the type, to avoid a recursive call.
        switch state {
        case .none: self.init(Progress.none)
        case .running(let number): self.init(Progress.running, number: number)
        case .done: self.init(Progress.done)
        case .failed(let number, let reason): self.init(Progress.failed, number: number, reason: reason)
        }
    }
}

extension Wire.Totals {
    init(_ totals: DownloadTotals, running: [DownloadSnapshot], rateLimit: Int64) {
        self.init(
            counts: totals.shownCounts(running), heldBytes: totals.heldBytes, completeLength: totals.completeLength,
            rate: running.reduce(0) { $0 + (Int64(exactly: ($1.rate ?? 0).rounded()) ?? 0) }, running: running.count,
            rateLimit: rateLimit == 0 ? nil : rateLimit)
    }
}

extension DownloadTotals {
    /// Returns the number of downloads by the state that the list shows. A running transfer may show `waiting`.
    func shownCounts(_ running: [DownloadSnapshot]) -> [String: Int] {
        var counts = counts
        // The list may have been changed since the running transfers were read.
        let waits = min(running.count { Wire.State($0.state) == .waiting }, counts[.active] ?? 0)
        if waits > 0 {
            counts[.active, default: 0] -= waits
            counts[.waiting, default: 0] += waits
        }
        return Dictionary(uniqueKeysWithValues: counts.map { ($0.rawValue, $1) })
    }
}

extension Wire.Note {
    init(_ note: TimelineNote, of id: DownloadID? = nil) {
        self.init(
            id: id?.description, number: note.number, time: note.time, kind: note.kind, message: note.message)
    }
}

extension Date {
    /// Milliseconds since 1970.
    var milliseconds: Int64 { Int64((timeIntervalSince1970 * 1000).rounded()) }
}
