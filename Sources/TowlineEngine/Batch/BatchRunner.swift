package import TowlineCore
import Synchronization

/// Runs the downloads of a list, several at once, and reads the list meanwhile.
package final class BatchRunner: Sendable {
    private let options: BatchOptions
    private let services: TransferServices
    private let observer: any BatchObserver
    /// The executor for the tasks of the batch; `nil`: the default executor of the Swift runtime.
    private let executor: (any TaskExecutor)?
    private let roster = BatchRoster()
    private let slots: BatchSlots
    /// `true` after `stop`: no further downloads begin.
    private let isStopped = Atomic<Bool>(false)

    /// Creates a batch, which does nothing before `run`. `after` is the timer; `nil` for a timer that uses
    /// `Task.sleep`.
    package init(
        options: BatchOptions, transport: any Transport, storage: any Storage, observer: any BatchObserver,
        executor: (any TaskExecutor)? = nil, after: DelayedCall? = nil,
        clock: @escaping @Sendable () -> Duration = { MonotonicClock.now }
    ) {
        self.options = options
        self.observer = observer
        let slots = BatchSlots(
            BatchConcurrency(fixed: options.concurrency, affordable: options.affordable),
            publishing: options.publishing, clock: clock)
        services = TransferServices(
            transport: transport, storage: storage, board: HostBoard(clock: clock),
            limiter: RateLimiter(rate: options.rateLimit, clock: clock), slots: slots, executor: executor, after: after,
            clock: clock, traces: options.traces)
        self.slots = slots
        self.executor = executor
    }

    /// Runs the downloads that `next` returns, as many at once as the options allow. Returns when all have ended.
    ///
    /// `next` returns the next entry of the list; a failure is a download that failed before it began. The batch calls
    /// `next` only when one more download may begin, so that a list of any length needs no memory.
    package func run(_ next: nonisolated(nonsending) @escaping @Sendable () async -> NextDownload) async {
        await withTaskExecutorPreference(executor) { await runAll(next) }
    }

    /// The next entry of the list: a download to run, or an error. It is not a generic type, because these cost time at
    /// their first use.
    package enum NextDownload: Sendable {
        /// A download to run with these options.
        case download(DownloadOptions)
        /// A download that failed before it began, for example because its line of the list is not valid.
        case failed(TowlineError)
        /// The list has no more entries.
        case end
    }

    private nonisolated(nonsending) func runAll(
        _ next: nonisolated(nonsending) @Sendable () async -> NextDownload
    ) async {
        await withDiscardingTaskGroup { group in
            var number = 0
            while true {
                let slot = await slots.take()
                guard !isStopped.load(ordering: .relaxed) else { return }
                let next = await next()
                number += 1
                slot.begin()
                switch next {
                case .end:
                    slot.unused()
                    return
                case .failed(let error):
                    observer.ended(number, .failure(error))
                    slot.ended()
                case .download(let options):
                    let item = BatchRoster.Item(number: number, options: options)
                    guard roster.begin(item, slot) else { continue }
                    reserveName(of: item)
                    group.addTask {
                        await self.runAndRepeat(item, slot)
                        slot.ended()
                    }
                }
            }
        }
    }

    /// Reserves a number for the file name in the URL of an entry, so that files of the batch with the same name become
    /// `NAME`, `NAME (1)` and so on, in the order of the list.
    private func reserveName(of item: BatchRoster.Item) {
        guard let names = services.names, case .file(let directory, nil) = item.options.target else { return }
        let place = Place(directory: directory, name: SafeFileName.ofURL(item.options.url))
        let reservation = names.reserve(
            place, NameBoard.Terms(item.options), services.storage, most: Destination.mostNumbered)
        item.nameNumber.store(reservation.number, ordering: .relaxed)
        item.isNameVacant.store(reservation.isVacant, ordering: .relaxed)
        names.begin(item.number)
    }

    /// Runs the download of an entry, and then those of later entries with the same URL and target, which wait for it.
    private nonisolated(nonsending) func runAndRepeat(_ item: BatchRoster.Item, _ slot: BatchSlots.Slot) async {
        var result = await transfer(item, slot, of: item)
        while let next = roster.next(after: item) {
            if let same = Self.repeated(result, for: next.item.options) {
                observer.started(next.item.number, next.item.options)
                observer.ended(next.item.number, .success(same))
            } else {
                next.item.nameNumber.store(item.nameNumber.load(ordering: .relaxed), ordering: .relaxed)
                result = await transfer(next.item, slot, of: item)
            }
            next.slot?.ended()
        }
    }

    /// Returns the result for an entry (`download`) whose URL and target were just downloaded for an earlier entry with
    /// the result `result`; `nil` if it must run itself, for example because that one failed.
    private static func repeated(
        _ result: Result<CompletedTransfer, TowlineError>, for download: DownloadOptions
    ) -> CompletedTransfer? {
        guard case .success(let completed) = result, download.checksum == nil else { return nil }
        switch completed.outcome {
        case .published(let file), .alreadyThere(let file):
            return CompletedTransfer(outcome: .alreadyThere(file), receivedBytes: 0)
        case .upToDate: return CompletedTransfer(outcome: completed.outcome, receivedBytes: 0)
        case .skipped, .streamed: return nil
        }
    }

    private nonisolated(nonsending) func transfer(
        _ item: BatchRoster.Item, _ slot: BatchSlots.Slot, of entry: BatchRoster.Item
    ) async -> Result<CompletedTransfer, TowlineError> {
        let run = SmallFileRun(item, services, BatchRelay(item, observer: observer, slot: slot))
        roster.reach(entry, by: run.mailbox)
        if isStopped.load(ordering: .relaxed) { run.mailbox.post(.stop(.close)) }
        observer.started(item.number, item.options)
        let result = await run.result()
        services.names?.decided(item.number)
        if case .failure(let error) = result, ConnectionSearch.isFailure(error.code) {
            slot.failed(at: item.options.url.origin)
        }
        observer.ended(item.number, result)
        return result
    }

    /// Stops all transfers soon and keeps their bytes, and starts no more. `run` returns when they have ended.
    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        for mailbox in roster.mailboxes { mailbox.post(.stop(.close)) }
    }
}

/// The observer of one transfer of a batch. It passes each report to the observer of the batch, together with the
/// download's position in the list.
final class BatchRelay: TransferObserver {
    private let item: BatchRoster.Item
    private let observer: any BatchObserver
    let slot: BatchSlots.Slot
    private var number: Int { item.number }

    init(_ item: BatchRoster.Item, observer: any BatchObserver, slot: BatchSlots.Slot) {
        self.item = item
        self.observer = observer
        self.slot = slot
    }

    func progressed(_ snapshot: TransferSnapshot) {
        if snapshot.state == .publishing {
            slot.fetched(snapshot.sharing, from: item.options.url.origin)
        } else if SmallFilePolicy.isLong(snapshot) {
            slot.isLong()
        }
        observer.progressed(number, snapshot)
    }

    func traced(_ line: String) { observer.traced(number, line) }

    func noticed(_ notice: TransferNotice) {
        if ConnectionSearch.isFailure(notice.kind) { slot.failed(at: item.options.url.origin) }
        observer.noticed(number, notice)
    }
}
