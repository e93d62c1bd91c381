import TowlineCore
import TowlineEngine

/// A request for a download that the list already contains, compared with the stored request. `RequestField.effect`
/// decides what each given field does.
struct RepeatedRequest {
    private let request: DownloadRequest
    private let record: RegisteredDownload
    private let stored: DownloadRequest
    /// The snapshot of the running transfer; `nil` if the download does not run.
    private let running: DownloadSnapshot?
    /// The given fields whose values differ from the stored request.
    let changes: [RequestField]

    /// - Parameters:
    ///   - record: the entry of the download in the list.
    ///   - download: the running download; `nil` if it does not run.
    init(_ request: DownloadRequest, _ record: RegisteredDownload, _ download: LiveDownload?) {
        let stored =
            download?.request ?? (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        var request = request
        // A finished download keeps no secrets.
        if download == nil, record.state.isComplete { request.forgetSecrets() }
        (self.request, self.record, self.stored) = (request, record, stored)
        running = download?.snapshot
        let standard = DownloadRequest(from: request.url, to: request.destination)
        let state = running == nil ? record.state : .active
        changes = RequestField.allCases.filter { field in
            let part = RequestPart(field)
            let isGiven = request.given?.contains(field) ?? !part.isEqual(request, standard)
            let isUsed = field != .startsPaused && field.effect(in: state) != .notNeeded
            return isGiven && isUsed && !part.isEqual(request, stored)
        }
    }

    private var state: RegisteredState { running == nil ? record.state : .active }

    /// The changed fields with this effect on the download.
    func changes(_ effect: RequestField.Effect) -> [RequestField] {
        changes.filter { $0.effect(in: state) == effect }
    }

    /// `true` to pause the download, `false` to start it, `nil` if the caller gave neither.
    var pauses: Bool? {
        guard let given = request.given else { return request.startsPaused ? true : nil }
        return given.contains(.startsPaused) ? request.startsPaused : nil
    }

    /// The stored request with the changed fields of the new one.
    var merged: DownloadRequest {
        var merged = stored
        for field in changes { RequestPart(field).copy(request, &merged) }
        // A client that may use public addresses only must not lead the transfer to others.
        if request.publicAddressesOnly, changes.contains(where: \.concernsServers) { merged.publicAddressesOnly = true }
        return merged
    }

    /// The checksum to compare the finished file with; `nil` if the stored request has the same one.
    var newChecksum: Checksum? { changes(.check).contains(.checksum) ? request.checksum : nil }

    /// `true` if the finished file gets its first follow-ups.
    var addsFollowUps: Bool { changes(.check).contains(.unpack) }

    // MARK: Conflicts

    /// Throws `optionConflict` with the names of all fields that cannot be applied to the download.
    func check() throws(TowlineError) {
        var (fields, reasons) = ([RequestField](), [String]())
        let restarting = changes(.restart)
        if let running, !running.canPauseWithoutLoss, running.heldBytes > 0, !restarting.isEmpty {
            fields += restarting
            reasons.append(
                "The download runs and cannot resume, so a restart would lose its bytes. Wait for its end, or cancel the "
                    + "download")
        }
        for field in changes(.check) {
            guard let reason = conflict(of: field) else { continue }
            fields.append(field)
            reasons.append(reason)
        }
        guard !fields.isEmpty else { return }
        let names = fields.map(\.rawValue)
        var error = TowlineError(
            .optionConflict,
            "\(DownloadSnapshot(record).source): the list already contains this download, and these options were not "
                + "applied to it: \(names.joined(separator: ", ")). \(reasons.joined(separator: ". "))")
        error.fields = names
        throw error
    }

    private func conflict(of field: RequestField) -> String? {
        let name = TerminalSafeText.make(record.name ?? "the file")
        switch field {
        case .checksum:
            let state = FollowUpState(code: record.reasonCode, reason: record.reason)
            let isDeleted = stored.followUps.prefix(state.completedCount(of: stored.followUps.count))
                .contains(where: \.deletesFile)
            return isDeleted ? "\(name) was unpacked and deleted, so it cannot be checked" : nil
        case .maximumSize:
            guard let length = record.completeLength, let maximum = request.maximumSize, length > maximum else {
                return nil
            }
            return "\(name) is finished and has \(ByteCountText.format(length))"
        case .unpack:
            return stored.followUps.isEmpty
                ? nil : "The download is finished and has other follow-up actions. Remove it from the list, then add it"
        default: return nil
        }
    }
}
