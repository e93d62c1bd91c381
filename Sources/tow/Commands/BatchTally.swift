import Synchronization
import TowlineCore
import TowlineEngine

/// Counts how downloads ended, for the exit status.
final class BatchTally: Sendable {
    private let statuses = Mutex<Set<ExitStatus>>([])

    /// Takes an end into account.
    func count(_ result: Result<CompletedTransfer, TowlineError>) {
        guard case .failure(let error) = result else { return }
        statuses.withLock { _ = $0.insert(ExitStatus(error)) }
    }

    /// 0 if all ended well; the status of what failed if all failures are of one kind; else 1. An interruption
    /// outweighs everything: the batch is not through.
    func exitStatus(signal: Int32?) -> Int32 {
        if let signal { return SignalWatcher.exitStatus(for: signal) }
        let statuses = statuses.withLock { $0 }
        guard let status = statuses.first else { return ExitStatus.success.rawValue }
        return statuses.count == 1 ? status.rawValue : ExitStatus.failed.rawValue
    }
}

/// Hands everything on and counts the ends.
final class TallyingObserver: BatchObserver {
    let tally = BatchTally()
    private let next: any BatchObserver

    init(next: any BatchObserver) { self.next = next }

    func started(_ number: Int, _ options: DownloadOptions) { next.started(number, options) }

    func progressed(_ number: Int, _ snapshot: TransferSnapshot) { next.progressed(number, snapshot) }

    func noticed(_ number: Int, _ notice: TransferNotice) { next.noticed(number, notice) }

    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        tally.count(result)
        next.ended(number, result)
    }
}
