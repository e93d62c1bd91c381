import TowlineCore
import TowlineEngine

/// How the downloads of one run ended, for its last words.
struct RunSummary {
    private(set) var finished = 0
    private(set) var failed = 0
    private var interrupted = 0
    private var received: Int64 = 0
    private var startsOver = false
    private var keepsBytes = false

    /// Takes an end into account.
    mutating func count(_ result: Result<CompletedTransfer, TowlineError>, _ row: ProgressRow?) {
        switch result {
        case .success(let completed):
            finished += 1
            received += completed.receivedBytes
            keepsBytes = true
        case .failure(let error):
            received += row?.snapshot.receivedBytes ?? 0
            if (row?.snapshot.heldBytes ?? 0) > 0 { keepsBytes = true }
            guard error.code == .cancelled else {
                failed += 1
                return
            }
            interrupted += 1
            if row?.snapshot.startsOverBecause != nil { startsOver = true }
        }
    }

    /// The last lines: of several downloads how many ended how, and after an interruption what to do.
    func lines(wasInterrupted: Bool, elapsed: Duration) -> [String] {
        var lines: [String] = []
        if finished + failed + interrupted > 1 {
            var counts = ["\(finished) done"]
            if failed > 0 { counts.append("\(failed) failed") }
            if interrupted > 0 { counts.append("\(interrupted) interrupted") }
            lines.append(
                counts.joined(separator: ", ") + "; "
                    + Phrases.fetched(received, received: received, elapsed: elapsed))
        }
        if wasInterrupted { lines.append(Phrases.resumeHint(goesOn: keepsBytes && !startsOver)) }
        return lines
    }
}
