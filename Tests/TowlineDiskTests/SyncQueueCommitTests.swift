import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Small files that arrive one after the other share a sync, and other files do not wait for more.
@Suite(.timeLimit(.minutes(1))) struct SyncQueueCommitTests {
    private let directory = ScratchDirectory()
    private let faulty = FaultySyscall()

    /// Returns a queue that has just served many files, slowly: small files wait for two minutes.
    private func patientQueue() -> SyncQueue {
        var commit = GroupCommit(longest: .seconds(120))
        let end = MonotonicClock.now + .seconds(3600)
        commit.served(100, from: end - .seconds(120), to: end)
        return SyncQueue(syscall: faulty, patience: 1, commit: commit)
    }

    private func publish(
        _ count: Int, _ queue: SyncQueue, _ folder: Folder, isFirst: Bool = true,
        in group: inout ThrowingTaskGroup<Void, any Error>
    ) throws {
        for index in 0..<count {
            let file = try #require(try folder.create("\(isFirst)-\(count)-\(index)", mode: 0o600))
            group.addTask {
                let naming = SyncQueue.Naming(folder: folder.descriptor, isFirst: isFirst) { true }
                _ = await queue.publish(file, naming, device: 1)
            }
        }
    }

    private var syncs: Int {
        faulty.calls.count { [.fsync, .fdatasync, .syncfs].contains($0) }
    }

    @Test func smallFilesWaitForOneAnother() async throws {
        let (queue, folder) = (patientQueue(), try Folder(directory.path, syscall: faulty))
        try await withThrowingTaskGroup(of: Void.self) { group in
            try publish(GroupCommit.enough - 1, queue, folder, in: &group)
            while queue.waiting(1) < GroupCommit.enough - 1 { await Task.yield() }
            // No file may be synced while too few files wait.
            try await Task.sleep(for: .milliseconds(50))
            #expect(syncs == 0 && queue.waiting(1) == GroupCommit.enough - 1)
            try publish(1, queue, folder, in: &group)
        }
        #expect(syncs == 3, "the bytes, the names, the directory")
    }

    /// A checkpoint, a long file and an early start are served at once, and so are the files that wait with them.
    @Test(arguments: ["checkpoint", "long file", "early"]) func whatIsNotSmallWaitsForNobody(_ other: String)
        async throws
    {
        let (queue, folder) = (patientQueue(), try Folder(directory.path, syscall: faulty))
        try await withThrowingTaskGroup(of: Void.self) { group in
            try publish(5, queue, folder, in: &group)
            while queue.waiting(1) < 5 { await Task.yield() }
            switch other {
            case "checkpoint": try await queue.synchronize(folder.descriptor, .data, device: 1)
            case "long file": try publish(1, queue, folder, isFirst: false, in: &group)
            default: queue.startWriteback(of: folder.descriptor, device: 1)
            }
        }
        #expect(queue.waiting(1) == 0)
    }
}
