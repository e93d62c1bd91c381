package import TowlineCore
import Synchronization

/// Runs many downloads, some at once, as they are read.
package final class BatchRunner: Sendable {
    private let options: BatchOptions
    private let services: TransferServices
    private let observer: any BatchObserver
    /// Where its tasks run; `nil`: where the runtime sees fit.
    private let executor: (any TaskExecutor)?
    /// In the order in which they began.
    private let running = Mutex<[TransferMailbox]>([])
    private let isStopped = Atomic<Bool>(false)

    /// Prepares a batch; nothing happens before `run`.
    package init(
        options: BatchOptions, transport: any Transport, storage: any Storage, observer: any BatchObserver,
        executor: (any TaskExecutor)? = nil, after: DelayedCall? = nil
    ) {
        self.options = options
        self.observer = observer
        services = TransferServices(
            transport: transport, storage: storage, board: HostBoard(), limiter: RateLimiter(rate: options.rateLimit),
            transferLimit: options.concurrency ?? BatchConcurrency.mostOfShort, after: after)
        self.executor = executor
    }

    /// Runs what `next` gives, `nil` being the end, as many at once as the options say; returns when all have ended.
    ///
    /// A failure that `next` gives is a download that failed before it began. `next` is asked only when there is room
    /// for one more, so that a list of any length costs no memory.
    package func run(_ next: nonisolated(nonsending) @escaping @Sendable () async -> NextDownload?) async {
        await withTaskExecutorPreference(executor) { await runAll(next) }
    }

    /// A download to run, or why there is none.
    package typealias NextDownload = Result<DownloadOptions, TowlineError>

    private nonisolated(nonsending) func runAll(
        _ next: nonisolated(nonsending) @Sendable () async -> NextDownload?
    ) async {
        // Beside the reading of the list.
        let reserve = options.reservesTimers ? Task { await TimerReserve.fill() } : nil
        let slots = BatchSlots(
            BatchConcurrency(fixed: options.concurrency, affordable: options.affordable), publishing: options.publishing
        )
        await withDiscardingTaskGroup { group in
            var number = 0
            while true {
                let slot = await slots.take()
                guard !isStopped.load(ordering: .relaxed), let item = await next() else { break }
                if number == 0 { await reserve?.value }
                number += 1
                switch item {
                case .failure(let error):
                    observer.ended(number, .failure(error))
                    slot.ended()
                case .success(let download):
                    group.addTask { [number] in
                        await self.transfer(download, number, slot)
                        slot.ended()
                    }
                }
            }
        }
    }

    private nonisolated(nonsending) func transfer(
        _ download: DownloadOptions, _ number: Int, _ slot: BatchSlots.Slot
    ) async {
        let relay = BatchRelay(number: number, observer: observer, slot: slot)
        let transfer = TransferRun(options: download, services: services, observer: relay)
        running.withLock { $0.append(transfer.mailbox) }
        if isStopped.load(ordering: .relaxed) { transfer.mailbox.post(.stop(.close)) }
        observer.started(number, download)
        do throws(TowlineError) {
            let completed = try await transfer.run()
            observer.ended(number, .success(completed))
        } catch {
            observer.ended(number, .failure(error))
        }
        running.withLock { running in
            if let index = running.firstIndex(where: { $0 === transfer.mailbox }) { running.remove(at: index) }
        }
        // The transfer holds its observer weakly.
        withExtendedLifetime(relay) {}
    }

    /// Ends every transfer soon, with everything kept; `run` returns when they have ended.
    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        for mailbox in running.withLock(\.self) { mailbox.post(.stop(.close)) }
    }
}

/// Puts a download's number to what its transfer tells.
private final class BatchRelay: TransferObserver {
    private let number: Int
    private let observer: any BatchObserver
    private let slot: BatchSlots.Slot

    init(number: Int, observer: any BatchObserver, slot: BatchSlots.Slot) {
        self.number = number
        self.observer = observer
        self.slot = slot
    }

    func progressed(_ snapshot: TransferSnapshot) {
        if snapshot.state == .publishing { slot.fetched(isShared: snapshot.sharedConnection) }
        observer.progressed(number, snapshot)
    }
    func noticed(_ notice: TransferNotice) { observer.noticed(number, notice) }
}
