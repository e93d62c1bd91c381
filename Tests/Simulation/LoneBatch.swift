import Synchronization
package import TowlineCore
package import TowlineEngine

/// Runs one download, alone or as the only entry of a list, as `tow get` does.
package protocol DownloadRunner: Sendable {
    /// Runs to the end.
    func run() async throws(TowlineError) -> CompletedTransfer
    /// Ends it soon.
    func stop(_ purpose: StopPurpose)
    /// The network changed.
    func nudge(_ network: NetworkState)
}

extension TransferRunner: DownloadRunner {}

/// A list of one.
package final class LoneBatch: DownloadRunner, BatchObserver {
    private let options: DownloadOptions
    private let observer: RecordingObserver
    private let runner = Mutex<BatchRunner?>(nil)
    private let result = Mutex<Result<CompletedTransfer, TowlineError>?>(nil)

    /// Prepares it.
    package init(
        _ options: DownloadOptions, _ transport: any Transport, _ storage: any Storage, _ observer: RecordingObserver,
        in simulation: Simulation? = nil
    ) {
        self.options = options
        self.observer = observer
        let clock: @Sendable () -> Duration = { simulation?.now ?? MonotonicClock.now }
        let runner = BatchRunner(
            options: BatchOptions(), transport: transport, storage: storage, observer: self, executor: simulation,
            after: simulation?.timer, clock: clock)
        self.runner.withLock { $0 = runner }
    }

    package func run() async throws(TowlineError) -> CompletedTransfer {
        let isGiven = Atomic<Bool>(false)
        guard let runner = runner.withLock({ $0 }) else { throw TowlineError(.cancelled, "ran already") }
        await runner.run { isGiven.exchange(true, ordering: .relaxed) ? .end : .download(self.options) }
        // Each holds the other.
        self.runner.withLock { $0 = nil }
        guard let result = result.withLock({ $0 }) else { throw TowlineError(.cancelled, "stopped before it began") }
        return try result.get()
    }

    package func stop(_ purpose: StopPurpose) { runner.withLock { $0 }?.stop() }
    package func nudge(_ network: NetworkState) {}

    package func started(_ number: Int, _ options: DownloadOptions) {}
    package func progressed(_ number: Int, _ snapshot: TransferSnapshot) { observer.progressed(snapshot) }
    package func noticed(_ number: Int, _ notice: TransferNotice) { observer.noticed(notice) }
    package func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        self.result.withLock { $0 = result }
    }
}
