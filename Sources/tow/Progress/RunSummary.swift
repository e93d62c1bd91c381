import TowlineCore
import TowlineEngine

/// The results of the downloads of one run, for its last lines.
struct RunSummary {
    private(set) var finished = 0
    /// The number of finished downloads whose file already existed.
    private var found = 0
    private var upToDate = 0
    private var skipped = 0
    private(set) var failed = 0
    private var interrupted = 0
    private var received: Int64 = 0
    private var startsOver = false
    private var keepsBytes = false
    /// The messages of the first failures.
    private var failures: [String] = []

    /// With more downloads than this, a failure message may have scrolled out of sight by the end, so it is repeated.
    private static let longList = 20
    /// The maximum number of failure messages that are repeated.
    private static let mostFailures = 100

    /// Counts the result of a download. `row` is its last state, or `nil` if it did not start.
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

    /// Returns the last lines of a run. They list failures again if there were many downloads, count results if there
    /// were several, and say what to do after an interruption.
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
