import Foundation
import Towline
import TowlineClient
import TowlineCore
import TowlineWire

// The values of the library, from the forms in which towd sends them.

extension DownloadSnapshot {
    /// Creates the snapshot that `towd` sent. Throws `invalidResponse` if `towd` is of another version.
    init(_ wire: Wire.Download) throws(TowlineError) {
        self.init(id: try wire.identifier, source: wire.url, directory: wire.directory)
        state = DownloadState(wire)
        (name, reason, group, metadata) = (wire.name, wire.reason, wire.group, wire.metadata)
        waitsUntil = wire.waitsUntil.map { Date(milliseconds: $0) }
        error = wire.error.map { TowlineError($0) }
        (completeLength, heldBytes, receivedBytes) = (wire.completeLength, wire.heldBytes, wire.receivedBytes)
        rate = wire.rate.map { Double($0) }
        remaining = wire.remaining.map { .seconds($0) }
        (connections, priority) = (wire.connections, wire.priority)
        addedAt = Date(milliseconds: wire.addedAt)
        endedAt = wire.endedAt.map { Date(milliseconds: $0) }
        canPauseWithoutLoss = wire.canPauseWithoutLoss ?? true
        followUp = wire.followUp.map { FollowUpState($0) } ?? .none
    }
}

extension DownloadRequest {
    /// Creates the request of a download, as far as `towd` reveals it.
    init(_ wire: Wire.Download) throws(TowlineError) {
        let directory = URL(fileURLWithPath: wire.directory, isDirectory: true)
        guard let url = URL(string: wire.url) else { throw TowlineError.otherVersion }
        self.init(
            from: url,
            to: wire.name.map { .file(directory.appendingPathComponent($0, isDirectory: false)) }
                ?? .directory(directory))
        (priority, group, metadata) = (wire.priority, wire.group, wire.metadata)
        mirrors = (wire.mirrors ?? []).compactMap { URL(string: $0) }
        options.rateLimit = wire.rateLimit
    }
}

extension Wire.Download {
    /// The identifier of the download. Throws `invalidResponse` if it is not valid.
    var identifier: DownloadID {
        get throws(TowlineError) { try DownloadID(service: id) }
    }
}

extension Wire.Name {
    /// The identifier of the download. Throws `invalidResponse` if it is not valid.
    var identifier: DownloadID {
        get throws(TowlineError) { try DownloadID(service: id) }
    }
}

extension DownloadID {
    /// Parses an identifier that `towd` sent.
    fileprivate init(service text: String) throws(TowlineError) {
        guard let id = DownloadID(text) else { throw TowlineError.otherVersion }
        self = id
    }
}

extension TowlineError {
    /// The error `invalidResponse` for a value that `towd` sent and that this version cannot read.
    fileprivate static let otherVersion = TowlineError(
        .invalidResponse, "cannot read towd's response. Check that the app and towd have the same version")

    /// Creates the error of a failed download.
    fileprivate init(_ wire: Wire.Failure) {
        self.init(
            Code(name: wire.code) ?? .transient, wire.message, status: wire.httpStatus,
            networkFailure: wire.networkFailure.flatMap { NetworkFailure(name: $0) })
    }
}

extension DownloadState {
    /// Creates the state of a download. A wait for an unknown reason is one for another attempt.
    fileprivate init(_ wire: Wire.Download) {
        self =
            switch wire.state {
            case .queued: .queued
            case .connecting: .connecting
            case .downloading: .downloading
            case .verifying: .verifying
            case .publishing: .publishing
            case .finished, .followUpFailed: .finished
            case .paused: .paused
            case .waiting: .waiting(wire.waitsFor.flatMap { WaitReason(rawValue: $0) } ?? .retry)
            case .failed: .failed
            case .cancelled: .cancelled
            }
    }
}

extension FollowUpState {
    fileprivate init(_ wire: Wire.FollowUp) {
        self =
            switch wire.state {
            case .none: .none
            case .running: .running(wire.number ?? 0)
            case .done: .done
            case .failed: .failed(wire.number ?? 0, wire.reason ?? "the action failed for an unknown reason")
            }
    }
}

extension TimelineNote {
    /// Creates a note from the form in which `towd` sends it.
    init(_ wire: Wire.Note) {
        self.init(number: wire.number, time: wire.time, kind: wire.kind, message: wire.message)
    }
}

extension DownloadTotals {
    /// Creates the totals of the list. States of a newer version are not counted.
    init(_ wire: Wire.Totals) {
        self.init()
        for (name, count) in wire.counts { if let state = RegisteredState(rawValue: name) { counts[state] = count } }
        (heldBytes, completeLength) = (wire.heldBytes, wire.completeLength)
    }
}

extension DownloadSegments {
    /// Creates the byte ranges of a download. Ranges that are not valid are ignored.
    init(_ wire: Wire.Segments) {
        let written = wire.written.compactMap { ends in
            ends.count == 2 && ends[0] < ends[1] ? ByteRange(ends[0], ends[1]) : nil
        }
        let segments = wire.attempts.filter { $0.from <= $0.to }.map { attempt in
            Segment(
                range: attempt.from..<attempt.to, position: attempt.position, rate: attempt.rate.map { Double($0) })
        }
        self.init(completeLength: wire.completeLength, written: ByteRangeSet(written), segments: segments)
    }
}
