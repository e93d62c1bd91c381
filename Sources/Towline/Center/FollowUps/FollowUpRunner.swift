import Synchronization
import TowlineCore
import TowlineEngine

/// Runs the follow-ups of finished downloads. The registry, the database of all downloads, stores the current
/// follow-up, so that a kill repeats at most one of them.
final class FollowUpRunner: Sendable {
    /// A closure that publishes the snapshot of a download after a follow-up changed its entry in the registry.
    typealias Publish = @Sendable (DownloadID) async -> Void

    /// A task that performs the follow-ups of one download, with a number that is higher for later tasks of the
    /// download.
    private struct Follower {
        var number: Int
        var task: Task<Void, Never>
    }

    /// The newest task that performs follow-ups for each download, and whether the runner has closed.
    private struct Tasks {
        var followers: [DownloadID: Follower] = [:]
        var isClosed = false
    }

    /// The prefix of the registry's named values (marks) that each state a download whose follow-ups must continue at
    /// the next launch.
    private static let prefix = "follow/"
    private let registry: any Registry
    private let performer: any FollowUpPerformer
    private let failures: RegistryFailures
    private let clock: any DownloadClock
    private let gate = FollowUpGate()
    private let state = Mutex(Tasks())

    init(
        registry: any Registry, performer: any FollowUpPerformer, failures: RegistryFailures, clock: any DownloadClock
    ) {
        (self.registry, self.performer, self.failures, self.clock) = (registry, performer, failures, clock)
    }

    /// Stores a mark, a named value in the registry, for a download, so that the next launch continues its follow-ups.
    ///
    /// The mark is written before the state of the download: a kill in between leaves a superfluous mark, but never
    /// loses a follow-up.
    static func mark(_ id: DownloadID, in registry: any Registry) async throws(TowlineError) {
        try await registry.setValue("", for: "\(prefix)\(id)")
    }

    /// Starts a task that performs the remaining follow-ups of a download, if it is finished. The task first waits for
    /// the end of an earlier task for the same download.
    func begin(_ id: DownloadID, _ publish: @escaping Publish) {
        state.withLock { state in
            guard !state.isClosed else { return }
            let before = state.followers[id]
            let number = (before?.number ?? 0) + 1
            let task = Task {
                if let before {
                    await withTaskCancellationHandler {
                        await before.task.value
                    } onCancel: {
                        before.task.cancel()
                    }
                }
                await follow(id, publish)
                self.state.withLock { if $0.followers[id]?.number == number { $0.followers[id] = nil } }
            }
            state.followers[id] = Follower(number: number, task: task)
        }
    }

    /// Cancels the follow-ups of a download that is removed or restarted, and waits for their end. A completed
    /// follow-up is recorded in the registry when this function returns, if the registry can be written.
    func end(_ id: DownloadID) async {
        guard let follower = state.withLock({ $0.followers[id] }) else { return }
        follower.task.cancel()
        await follower.task.value
    }

    /// Continues the follow-ups that an earlier process left incomplete. Called at launch.
    func resume(_ publish: @escaping Publish) async throws(TowlineError) {
        for name in try await registry.values(prefix: Self.prefix).keys {
            if let id = DownloadID(name.dropFirst(Self.prefix.count)) { begin(id, publish) }
        }
    }

    /// Cancels the follow-ups of all downloads and starts no more. The next launch continues them.
    func close() {
        let followers = state.withLock { state in
            state.isClosed = true
            return Array(state.followers.values)
        }
        for follower in followers { follower.task.cancel() }
    }

    /// Waits until the tasks that perform follow-ups of all downloads have ended, after `close` cancelled them.
    func finish() async {
        for follower in state.withLock({ Array($0.followers.values) }) { await follower.task.value }
    }

    /// `true` if the follow-ups of the current task must stop, because the task is cancelled or the runner has closed.
    private var isOver: Bool { Task.isCancelled || state.withLock { $0.isClosed } }

    private func follow(_ id: DownloadID, _ publish: Publish) async {
        guard !isOver else { return }
        guard let found = await untilItCan({ () throws(TowlineError) in try await registry.download(id) }),
            let record = found, var sequence = FollowUpSequence(record, clock: clock)
        else { return }
        while let followUp = sequence.next {
            guard await gate.enter() else { return }
            let result = await perform(followUp, of: sequence.file)
            gate.leave()
            let change: RegistryChange
            switch result {
            case .success(let path): change = sequence.complete(movedTo: path)
            case .failure(let error):
                // The next launch starts an interrupted follow-up again.
                if isOver { return }
                change = sequence.fail(error)
            }
            guard await write(change, publish), !isOver else { return }
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
    ///   or the registry could not be written before the runner closed.
    private func write(_ change: RegistryChange, _ publish: Publish) async -> Bool {
        let isWritten = await untilItCan { () async throws(TowlineError) -> Bool in
            try await registry.apply([change])
            return true
        }
        guard isWritten != nil else { return false }
        return await untilItCan { () async throws(TowlineError) -> Bool in
            try await removeMark(after: change, publish)
        } ?? false
    }

    /// Removes the mark that makes the next launch continue the follow-ups of a download, if no follow-up is left.
    /// Returns `false` if the registry does not contain the result `end`.
    private func removeMark(after end: RegistryChange, _ publish: Publish) async throws(TowlineError) -> Bool {
        guard let record = try await registry.download(end.id), record.state == end.state?.state,
            record.reasonCode == end.state?.reasonCode, record.endedAt == end.state?.endedAt
        else { return false }
        if case .running = FollowUpState(code: record.reasonCode, reason: nil) {
        } else {
            try await registry.setValue(nil, for: "\(Self.prefix)\(end.id)")
        }
        await publish(end.id)
        return true
    }

    /// Accesses the registry with `body` and retries every second until it succeeds. Otherwise, a full disk of the
    /// registry would cause a completed follow-up to run again. After the runner closes or the task is cancelled, a
    /// failed access is not retried.
    ///
    /// - Returns: the result of `body`, or `nil` if the last access failed before the runner closed or the task was
    ///   cancelled.
    private func untilItCan<Value: Sendable>(_ body: () async throws(TowlineError) -> Value) async -> Value? {
        while true {
            do throws(TowlineError) {
                return try await body()
            } catch {
                failures.report(error)
            }
            if isOver { return nil }
            try? await clock.sleep(for: RegistryFailures.retryInterval)
        }
    }
}
