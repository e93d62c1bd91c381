import Foundation
import TowlineCore
import TowlineEngine

/// What follows a finished download. Where it stands is in the list's entry, so that a kill repeats one step at most.
extension DownloadCenter {
    /// Goes on with the follow-ups of a download, if it is finished and has some left.
    func beginFollowUps(_ id: DownloadID) {
        guard followers[id] == nil, !isClosed else { return }
        followers[id] = Task {
            await follow(id)
            followers[id] = nil
        }
    }

    /// Goes on with all that an earlier process left.
    func resumeFollowUps() async throws(TowlineError) {
        for name in try await registry.values(prefix: "follow/").keys {
            if let id = DownloadID(name.dropFirst("follow/".count)) { beginFollowUps(id) }
        }
    }

    private func follow(_ id: DownloadID) async {
        do throws(TowlineError) {
            guard let record = try await registry.download(id), record.state == .finished,
                case .running(let first) = FollowUpState(code: record.reasonCode, reason: record.reason)
            else { return }
            let request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
            var number = first
            var file = finishedFile(record, request)
            while number < request.followUps.count, !isClosed {
                let followUp = request.followUps[number]
                do throws(TowlineError) {
                    if let path = try await performer.perform(followUp, of: file) {
                        file.path = path
                        try await moved(id, to: path)
                    }
                } catch {
                    if isClosed || Task.isCancelled { return }
                    return try await settle(
                        id, record, .failed(number, error.message), "follow-up-failed", error.message)
                }
                number += 1
                let state = number == request.followUps.count ? FollowUpState.done : .running(number)
                try await settle(id, record, state, "follow-up", "done: \(followUp.title)")
            }
        } catch {
            registryFailed(error)
        }
    }

    private func moved(_ id: DownloadID, to path: String) async throws(TowlineError) {
        let url = URL(fileURLWithPath: path, isDirectory: false)
        var change = RegistryChange(id)
        change.directory = url.deletingLastPathComponent().path
        change.name = url.lastPathComponent
        try await registry.apply([change])
    }

    private func settle(
        _ id: DownloadID, _ record: RegisteredDownload, _ state: FollowUpState, _ kind: String, _ message: String
    ) async throws(TowlineError) {
        var reason: String?
        if case .failed(_, let text) = state { reason = text }
        var change = RegistryChange(
            id, state: .init(.finished, reason: reason, reasonCode: state.code, endedAt: record.endedAt))
        change.note(kind, message)
        try await registry.apply([change])
        if case .running = state {} else { try await registry.setValue(nil, for: "follow/\(id)") }
        await publish(id)
    }

    private func finishedFile(_ record: RegisteredDownload, _ request: DownloadRequest) -> FinishedFile {
        FinishedFile(
            id: record.id, path: Place(directory: record.directory, name: record.name ?? "").path,
            source: DownloadSnapshot(record).source, length: record.completeLength ?? record.heldBytes,
            endedAt: record.endedAt ?? record.addedAt, checksum: request.checksum)
    }
}
