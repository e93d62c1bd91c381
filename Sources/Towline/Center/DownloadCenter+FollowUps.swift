import Foundation
import TowlineCore
import TowlineEngine

/// The follow-ups (actions such as unpacking) of finished downloads. The registry, the database of all downloads,
/// stores the current follow-up, so that a kill repeats at most one of them.
extension DownloadCenter {
    /// A task that performs the follow-ups of one download, with a number that is higher for later tasks of the
    /// download.
    struct Follower {
        var number: Int
        var task: Task<Void, Never>
    }

    /// Starts a task that performs the remaining follow-ups of a download, if it is finished. The task first waits for
    /// the end of an earlier task for the same download.
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

    /// Cancels the follow-ups of a download that is removed or restarted, and waits for their end. A completed
    /// follow-up is recorded in the registry when this function returns, if the registry can be written.
    func endFollowUps(_ id: DownloadID) async {
        guard let follower = followers[id] else { return }
        follower.task.cancel()
        await follower.task.value
    }

    /// Continues the follow-ups that an earlier process left incomplete. Called at launch.
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
                // The next launch starts an interrupted follow-up again.
                if isClosed || Task.isCancelled { return }
                state = .failed(number, error.message)
                change.note("follow-up-failed", error.message)
            }
            change.state = .init(
                .finished, reason: state.failure, reasonCode: state.code, endedAt: record.endedAt)
            guard await recordFollowUp(change), case .running = state, !isClosed, !Task.isCancelled else { return }
        }
    }

    private func perform(_ followUp: FollowUp, of file: FinishedFile) async -> Result<String?, TowlineError> {
        do throws(TowlineError) {
            return .success(try await performer.perform(followUp, of: file))
        } catch {
            return .failure(error)
        }
    }

    /// Writes the result of a follow-up and the new path of a moved file to the registry in one transaction.
    ///
    /// - Returns: whether the registry contains the result. `false` if the download was restarted or removed meanwhile,
    ///   or the registry could not be written before the center closed.
    private func recordFollowUp(_ end: RegistryChange) async -> Bool {
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

    /// Removes the value `follow/ID` from the registry, which makes the next launch continue the follow-ups, if no
    /// follow-up is left. Returns `false` if the registry does not contain the result `end`.
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

    /// Accesses the registry with `body` and retries every second until it succeeds. Otherwise, a full disk of the
    /// registry would cause a completed follow-up to run again. After the center closes or the task is cancelled, a
    /// failed access is not retried.
    ///
    /// - Returns: the result of `body`, or `nil` if the last access failed before the center closed or the task was
    ///   cancelled.
    private func untilItCan<Value: Sendable>(_ body: () async throws(TowlineError) -> Value) async -> Value? {
        while true {
            do throws(TowlineError) {
                return try await body()
            } catch {
                failures.report(error)
            }
            if isClosed || Task.isCancelled { return nil }
            try? await Task.sleep(for: RegistryFailures.retryInterval)
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
    /// The message of the failed follow-up; `nil` if no follow-up failed.
    fileprivate var failure: String? {
        guard case .failed(_, let reason) = self else { return nil }
        return reason
    }
}

extension Place {
    /// Creates the directory and the file name of an absolute path.
    init(path: String) {
        let parts = path.split(separator: "/")
        self.init(directory: "/" + parts.dropLast().joined(separator: "/"), name: parts.last.map(String.init) ?? "")
    }
}
