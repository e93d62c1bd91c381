import Synchronization
import TowlineCore
import TowlineEngine

/// The results of the downloads, for the exit status.
final class BatchTally: Sendable {
    private let statuses = Mutex<Set<ExitStatus>>([])

    func count(_ result: Result<CompletedTransfer, TowlineError>) {
        guard case .failure(let error) = result else { return }
        statuses.withLock { _ = $0.insert(ExitStatus(error)) }
    }

    /// Returns 0 if all downloads succeeded; their common status if all failures have the same one; else 1. A signal
    /// takes precedence, because the batch is not complete.
    func exitStatus(signal: Int32?) -> Int32 {
        if let signal { return SignalWatcher.exitStatus(for: signal) }
        let statuses = statuses.withLock { $0 }
        guard let status = statuses.first else { return ExitStatus.success.rawValue }
        return statuses.count == 1 ? status.rawValue : ExitStatus.failed.rawValue
    }
}

/// An observer that passes all events on, counts the results, and adds the line of the list to failures.
final class TallyingObserver: BatchObserver {
    let tally = BatchTally()
    private let next: any BatchObserver

    private let places: ListPlaces

    init(next: any BatchObserver, places: ListPlaces) { (self.next, self.places) = (next, places) }

    func started(_ number: Int, _ options: DownloadOptions) { next.started(number, options) }

    func progressed(_ number: Int, _ snapshot: TransferSnapshot) { next.progressed(number, snapshot) }

    func noticed(_ number: Int, _ notice: TransferNotice) { next.noticed(number, notice) }

    func traced(_ number: Int, _ line: String) { next.traced(number, line) }

    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        tally.count(result)
        next.ended(number, placed(result, number))
        places.forget(number)
    }

    /// Adds the line number to a failure of a list's entry, unless its message already begins with the line number.
    private func placed(
        _ result: Result<CompletedTransfer, TowlineError>, _ number: Int
    ) -> Result<CompletedTransfer, TowlineError> {
        guard case .failure(let error) = result, error.code != .cancelled, let line = places.line(of: number),
            !error.message.hasPrefix("\(line.list), line ")
        else { return result }
        return .failure(error.with(message: line.text + error.message))
    }
}
