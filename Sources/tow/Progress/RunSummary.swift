import TowlineCore
import TowlineEngine

/// How the downloads of one run ended, for its last words.
struct RunSummary {
    private(set) var finished = 0
    /// Of those, what was there.
    private var found = 0
    private var upToDate = 0
    private var skipped = 0
    private(set) var failed = 0
    private var interrupted = 0
    private var received: Int64 = 0
    private var startsOver = false
    private var keepsBytes = false
    /// The first ones' messages.
    private var failures: [String] = []

    /// Of so many downloads, what was said of a failed one is no longer to be seen at the end.
    private static let longList = 20
    /// So many failures are told once more.
    private static let mostFailures = 100

    /// Takes an end into account.
    mutating func count(_ result: Result<CompletedTransfer, TowlineError>, _ row: ProgressRow?) {
        switch result {
        case .success(let completed):
            finished += 1
            received += completed.receivedBytes
            switch completed.outcome {
            case .alreadyThere: found += 1
            case .upToDate: upToDate += 1
            case .skipped: skipped += 1
            case .published, .streamed: break
            }
            keepsBytes = true
        case .failure(let error):
            received += row?.snapshot.receivedBytes ?? 0
            if (row?.snapshot.heldBytes ?? 0) > 0 { keepsBytes = true }
            guard error.code == .cancelled else {
                failed += 1
                if failures.count < Self.mostFailures { failures.append(Phrases.failure(error, row)) }
                return
            }
            interrupted += 1
            if row?.snapshot.startsOverBecause != nil { startsOver = true }
        }
    }

    /// The last lines of a run. They list failures again if there were many downloads, count results if there were
    /// several, and say what to do after an interruption.
    func lines(wasInterrupted: Bool, elapsed: Duration) -> [String] {
        var lines: [String] = []
        let count = finished + failed + interrupted
        if count > Self.longList {
            lines += failures.map { "failed: \($0)" }
            let others = failed - failures.count
            if others > 0 {
                lines.append("failed: \(others) more downloads. See the messages above; -q prints failures only")
            }
        }
        if count > 1 {
            var counts = ["\(finished - found - upToDate - skipped) done"]
            if found > 0 { counts.append("\(found) already downloaded") }
            if upToDate > 0 { counts.append("\(upToDate) up to date") }
            if skipped > 0 { counts.append("\(skipped) skipped") }
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
