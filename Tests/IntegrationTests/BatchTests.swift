import FaultServer
import Foundation
import Synchronization
import Testing
import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine

/// Where the downloads of a batch run.
@Suite struct BatchTests {
    /// Runs jobs on some thread or other and counts them.
    private final class CountingExecutor: TaskExecutor {
        let count = Atomic<Int>(0)

        func enqueue(_ job: consuming ExecutorJob) {
            count.add(1, ordering: .relaxed)
            let job = UnownedJob(job)
            DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    private final class Ends: BatchObserver {
        let results = Mutex<[Result<CompletedTransfer, TowlineError>]>([])
        func started(_ number: Int, _ options: DownloadOptions) {}
        func progressed(_ number: Int, _ snapshot: TransferSnapshot) {}
        func noticed(_ number: Int, _ notice: TransferNotice) {}
        func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
            results.withLock { $0.append(result) }
        }
    }

    /// A file that is there may be long, and is read at once: not by a thread that others wait for.
    @Test(arguments: [true, false]) func whatIsComparedWithAChecksumRunsWhereItMayTakeLong(_ isCompared: Bool)
        async throws
    {
        try await Site.with(try await Site(length: 20_000)) { site in
            let right = CRC32C.bigEndian(FaultContent(seed: 1).bytes(in: 0..<20_000))
            let sum = try #require(Checksum(algorithm: .crc32c, value: right))
            let options = try site.options {
                if isCompared { $0.checksum = sum }
            }
            let (usual, patient) = (CountingExecutor(), CountingExecutor())
            let ends = Ends()
            for _ in 0..<2 {
                let transport = CurlTransport()
                let runner = BatchRunner(
                    options: BatchOptions(), transport: transport, storage: FileStorage(), observer: ends,
                    executor: usual, patientExecutor: patient)
                let isGiven = Atomic<Bool>(false)
                await runner.run { isGiven.exchange(true, ordering: .relaxed) ? .end : .download(options) }
                await transport.shutdown()
            }
            let outcomes = try ends.results.withLock { $0 }.map { try $0.get().outcome }
            guard outcomes.count == 2, case .published = outcomes[0], case .alreadyThere = outcomes[1] else {
                Issue.record("\(outcomes)")
                return
            }
            #expect(usual.count.load(ordering: .relaxed) > 0)
            #expect((patient.count.load(ordering: .relaxed) > 0) == isCompared)
        }
    }
}
