import Foundation
import TowlineCore
import TowlineEngine

/// What follows a finished download. Where it stands is in the list's entry, so that a kill repeats one step at most.
extension DownloadCenter {
    /// Somebody who sees to the follow-ups of one download.
    struct Follower {
        var number: Int
        var task: Task<Void, Never>
    }

    /// Goes on with the follow-ups of a download, if it is finished and has some left; after whoever is at them.
    func beginFollowUps(_ id: DownloadID) {
        guard !isClosed else { return }
        let before = followers[id]
        let number = (before?.number ?? 0) + 1
        let task = Task {
            if let before {
                await withTaskCancellationHandler {
                    await before.task.value
                } onCancel: {
                    before.task.cancel()
                }
            }
            await follow(id)
            if followers[id]?.number == number { followers[id] = nil }
        }
        followers[id] = Follower(number: number, task: task)
    }

    /// Ends what follows a download soon, and waits for that: it is removed, or is to be fetched again. What was done
    /// is noted before this returns, if the list can be written.
    func endFollowUps(_ id: DownloadID) async {
        guard let follower = followers[id] else { return }
        follower.task.cancel()
        await follower.task.value
    }

    /// Goes on with all that an earlier process left.
    func resumeFollowUps() async throws(TowlineError) {
        for name in try await registry.values(prefix: "follow/").keys {
            if let id = DownloadID(name.dropFirst("follow/".count)) { beginFollowUps(id) }
        }
    }

    private func follow(_ id: DownloadID) async {
        guard !isClosed, !Task.isCancelled else { return }
        guard let found = await untilItCan({ () throws(TowlineError) in try await registry.download(id) }),
            let record = found, record.state == .finished,
            case .running(let first) = FollowUpState(code: record.reasonCode, reason: record.reason)
        else { return }
        let request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        var number = first
        var file = finishedFile(record, request)
        while number < request.followUps.count {
            guard await followUpGate.enter() else { return }
            let result = await perform(request.followUps[number], of: file)
            followUpGate.leave()
            var change = RegistryChange(id)
            let state: FollowUpState
            switch result {
            case .success(let path):
                if let path {
                    file.path = path
                    change.setPlace(Place(path: path))
                }
                let title = request.followUps[number].title
                change.note("follow-up", "the follow-up action is complete: \(title)")
                number += 1
                state = number == request.followUps.count ? .done : .running(number)
            case .failure(let error):
                // What was cut short begins again at the next launch.
                if isClosed || Task.isCancelled { return }
                state = .failed(number, error.message)
                change.note("follow-up-failed", error.message)
            }
            change.state = .init(
                .finished, reason: state.failure, reasonCode: state.code, endedAt: record.endedAt)
            guard await settle(change), case .running = state, !isClosed, !Task.isCancelled else { return }
        }
    }

    private func perform(_ followUp: FollowUp, of file: FinishedFile) async -> Result<String?, TowlineError> {
        do throws(TowlineError) {
            return .success(try await performer.perform(followUp, of: file))
        } catch {
            return .failure(error)
        }
    }

    /// Writes down how a step ended, with the place that the file has now, in one piece.
    ///
    /// - Returns: whether it is in the list. It is not where the download began again meanwhile, or is gone.
    private func settle(_ end: RegistryChange) async -> Bool {
        var change = end
        change.onlyFrom = .finished
        let written = change
        let isWritten = await untilItCan { () async throws(TowlineError) -> Bool in
            try await registry.apply([written])
            return true
        }
        guard isWritten != nil else { return false }
        return await untilItCan { () async throws(TowlineError) -> Bool in try await close(written) } ?? false
    }

    /// Forgets that a download is to be looked after at the next launch, if its last step was written down.
    private func close(_ end: RegistryChange) async throws(TowlineError) -> Bool {
        guard let record = try await registry.download(end.id), record.state == .finished,
            record.reasonCode == end.state?.reasonCode, record.endedAt == end.state?.endedAt
        else { return false }
        if case .running = FollowUpState(code: record.reasonCode, reason: nil) {
        } else {
            try await registry.setValue(nil, for: "follow/\(end.id)")
        }
        await publish(end.id)
        return true
    }

    /// Does something with the list, again and again while it cannot be done: a step that was done is not done once
    /// more because the list's disk is full. When the center closes, or nobody wants it any more, once more and then
    /// no more.
    ///
    /// - Returns: `nil` if it could not be done until then.
    private func untilItCan<Value: Sendable>(_ body: () async throws(TowlineError) -> Value) async -> Value? {
        while true {
            do throws(TowlineError) {
                return try await body()
            } catch {
                registryFailed(error)
            }
            if isClosed || Task.isCancelled { return nil }
            try? await Task.sleep(for: Self.listRetryInterval)
        }
    }

    private func finishedFile(_ record: RegisteredDownload, _ request: DownloadRequest) -> FinishedFile {
        FinishedFile(
            id: record.id, path: Place(directory: record.directory, name: record.name ?? "").path,
            source: DownloadSnapshot(record).source, length: record.completeLength ?? record.heldBytes,
            endedAt: record.endedAt ?? record.addedAt, checksum: request.checksum)
    }
}

extension FollowUpState {
    /// Why a step failed.
    fileprivate var failure: String? {
        guard case .failed(_, let reason) = self else { return nil }
        return reason
    }
}

extension Place {
    /// The place of an absolute path.
    init(path: String) {
        let parts = path.split(separator: "/")
        self.init(directory: "/" + parts.dropLast().joined(separator: "/"), name: parts.last.map(String.init) ?? "")
    }
}
