import Foundation
import Synchronization
import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine

/// What one transfer told and how it ended.
struct Outcome: Sendable {
    let result: Result<CompletedTransfer, TowlineError>
    let notices: [TransferNotice]

    var code: TowlineError.Code? {
        if case .failure(let error) = result { error.code } else { nil }
    }
    /// Bytes that came over the wire, overlaps included; 0 for a failure.
    var received: Int64 {
        if case .success(let completed) = result { completed.receivedBytes } else { 0 }
    }
    var succeeded: Bool { code == nil }
    /// The exit status that `tow get` would have.
    var status: ExitStatus {
        if case .failure(let error) = result { ExitStatus(error) } else { .success }
    }
    var message: String {
        if case .failure(let error) = result { error.message } else { "" }
    }
    func says(_ kind: TransferNotice.Kind) -> Bool { notices.contains { $0.kind == kind } }
}

/// One transfer in this process, over the real wire and the real disk.
///
/// With `TOWLINE_AS_BATCH=1` in the environment as the only one of a list, as `tow get` runs it: what may be a small file
/// begins without a machine then (`SmallFileRun`). `scripts/torture` runs all scenarios once more in that way.
final class Download: Sendable {
    static let isBatch = ProcessInfo.processInfo.environment["TOWLINE_AS_BATCH"] == "1"

    private let runner: any Runner
    private let transport: CurlTransport
    let observer = RecordingObserver()

    init(_ options: DownloadOptions, storage: any Storage = FileStorage(), isBatch: Bool = Download.isBatch) {
        transport = CurlTransport()
        if isBatch {
            runner = LoneBatch(options, transport, storage, observer)
        } else {
            let services = TransferServices(
                transport: transport, storage: storage, board: HostBoard(), limiter: RateLimiter(rate: 0))
            runner = TransferRunner(options: options, services: services, observer: observer)
        }
    }

    /// Runs to the end. A transfer that hangs is stopped after the deadline and ends as `cancelled`.
    func run(deadline: Duration = .seconds(90)) async -> Outcome {
        let runner = runner
        let watchdog = Task {
            try await Task.sleep(for: deadline)
            runner.stop(.pause)
        }
        let result: Result<CompletedTransfer, TowlineError>
        do throws(TowlineError) {
            result = .success(try await runner.run())
        } catch {
            result = .failure(error)
        }
        watchdog.cancel()
        await transport.shutdown()
        observer.end()
        return Outcome(result: result, notices: observer.notices)
    }

    func stop(_ purpose: StopPurpose = .pause) { runner.stop(purpose) }

    func nudge() { runner.nudge() }
}

private protocol Runner: Sendable {
    func run() async throws(TowlineError) -> CompletedTransfer
    func stop(_ purpose: StopPurpose)
    func nudge()
}

extension TransferRunner: Runner {}

/// A list of one.
private final class LoneBatch: Runner, BatchObserver {
    private let options: DownloadOptions
    private let observer: RecordingObserver
    private let runner = Mutex<BatchRunner?>(nil)
    private let result = Mutex<Result<CompletedTransfer, TowlineError>?>(nil)

    init(
        _ options: DownloadOptions, _ transport: CurlTransport, _ storage: any Storage, _ observer: RecordingObserver
    ) {
        self.options = options
        self.observer = observer
        let runner = BatchRunner(
            options: BatchOptions(), transport: transport, storage: storage, observer: self)
        self.runner.withLock { $0 = runner }
    }

    func run() async throws(TowlineError) -> CompletedTransfer {
        let isGiven = Atomic<Bool>(false)
        guard let runner = runner.withLock({ $0 }) else { throw TowlineError(.cancelled, "ran already") }
        await runner.run { isGiven.exchange(true, ordering: .relaxed) ? .end : .download(self.options) }
        // Each holds the other.
        self.runner.withLock { $0 = nil }
        guard let result = result.withLock({ $0 }) else { throw TowlineError(.cancelled, "stopped before it began") }
        return try result.get()
    }

    func stop(_ purpose: StopPurpose) { runner.withLock { $0 }?.stop() }
    func nudge() {}

    func started(_ number: Int, _ options: DownloadOptions) {}
    func progressed(_ number: Int, _ snapshot: TransferSnapshot) { observer.progressed(snapshot) }
    func noticed(_ number: Int, _ notice: TransferNotice) { observer.noticed(notice) }
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        self.result.withLock { $0 = result }
    }
}

/// Keeps what a transfer tells, and wakes who waits for it.
final class RecordingObserver: TransferObserver {
    private struct State {
        var notices: [TransferNotice] = []
        var snapshot = TransferSnapshot()
        var isOver = false
        var waiters: [(@Sendable (TransferSnapshot) -> Bool, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var notices: [TransferNotice] { state.withLock { $0.notices } }
    var snapshot: TransferSnapshot { state.withLock { $0.snapshot } }

    func progressed(_ snapshot: TransferSnapshot) {
        let due = state.withLock { state in
            state.snapshot = snapshot
            // Each condition is asked once: one that looks at more than the snapshot may change its mind in between.
            let answers = state.waiters.map { (waiter: $0, isDue: $0.0(snapshot)) }
            state.waiters = answers.filter { !$0.isDue }.map(\.waiter)
            return answers.filter(\.isDue).map(\.waiter.1)
        }
        due.forEach { $0.resume() }
    }

    func noticed(_ notice: TransferNotice) { state.withLock { $0.notices.append(notice) } }

    /// No further snapshot comes.
    func end() {
        let due = state.withLock { state in
            state.isOver = true
            defer { state.waiters = [] }
            return state.waiters.map(\.1)
        }
        due.forEach { $0.resume() }
    }

    /// Returns when a snapshot meets the condition, or the transfer is over.
    func wait(until condition: @escaping @Sendable (TransferSnapshot) -> Bool) async {
        await withCheckedContinuation { continuation in
            let holds = state.withLock { state in
                if state.isOver || condition(state.snapshot) { return true }
                state.waiters.append((condition, continuation))
                return false
            }
            if holds { continuation.resume() }
        }
    }
}
