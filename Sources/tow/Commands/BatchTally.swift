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

/// Hands everything on, counts the ends, and says of what fails where in a list it stands.
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

    /// A failure with its line's number before it; one of the list as text has that already.
    private func placed(
        _ result: Result<CompletedTransfer, TowlineError>, _ number: Int
    ) -> Result<CompletedTransfer, TowlineError> {
        guard case .failure(let error) = result, error.code != .cancelled, let place = places.place(of: number),
            !error.message.hasPrefix("\(place.list), line ")
        else { return result }
        return .failure(
            TowlineError(
                error.code, place.text + error.message, status: error.status, systemError: error.systemError))
    }
}
