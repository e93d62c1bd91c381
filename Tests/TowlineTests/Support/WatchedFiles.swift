import FaultServer
import Synchronization
import TowlineCore
import TowlineDisk
import TowlineEngine

@testable import Towline

/// A disk whose operations can wait for a gate, and that records which journals are read.
final class WatchedFiles: DownloadFiles {
    private let base: any DownloadFiles
    private let gate = Mutex<Gate?>(nil)
    private let reads = Mutex<[DownloadID]>([])
    private let waiting = Atomic(0)

    init(_ base: any DownloadFiles) { self.base = base }

    /// Makes all further operations wait until the gate opens.
    func wait(for gate: Gate) { self.gate.withLock { $0 = gate } }

    /// The number of operations that wait for the gate.
    var waitingAnswers: Int { waiting.load(ordering: .relaxed) }

    /// Returns the downloads whose journals were read since the last call.
    func takeReads() -> [DownloadID] {
        reads.withLock { reads in
            defer { reads = [] }
            return reads
        }
    }

    private func pass() async {
        guard let gate = gate.withLock({ $0 }) else { return }
        waiting.add(1, ordering: .relaxed)
        await gate.passed()
        waiting.subtract(1, ordering: .relaxed)
    }

    func held(_ records: [RegisteredDownload]) async -> [JournalSummary?] {
        reads.withLock { $0 += records.map(\.id) }
        await pass()
        return await base.held(records)
    }

    func content(_ record: RegisteredDownload) async throws(TowlineError) -> ContentFile {
        await pass()
        return try await base.content(record)
    }

    func hasFinished(_ record: RegisteredDownload) async -> Bool {
        await pass()
        return await base.hasFinished(record)
    }

    func mismatch(
        _ record: RegisteredDownload, _ checksum: Checksum
    ) async throws(TowlineError) -> ChecksumMismatch? {
        await pass()
        return try await base.mismatch(record, checksum)
    }

    func holds(_ record: RegisteredDownload) async -> Bool {
        await pass()
        return await base.holds(record)
    }

    func discardUnfinished(_ record: RegisteredDownload) async throws(TowlineError) {
        await pass()
        try await base.discardUnfinished(record)
    }

    func removeFinished(_ record: RegisteredDownload) async throws(TowlineError) {
        await pass()
        try await base.removeFinished(record)
    }

    func freeSpace(_ directory: String) async -> Int64? {
        await pass()
        return await base.freeSpace(directory)
    }

    func isWritable(_ record: RegisteredDownload) async -> Bool {
        await pass()
        return await base.isWritable(record)
    }

    func fileSystem(_ directory: String) async -> FileSystemIdentity.Finding? {
        await pass()
        return await base.fileSystem(directory)
    }

    func unfinished(in directory: String) async -> [UnfinishedFile] {
        await pass()
        return await base.unfinished(in: directory)
    }
}
