import TowlineCore
import TowlineEngine

/// Progress as plain lines, for logs and pipes: a line per tenth of a download, at most one a second and at least one
/// in ten seconds; notices; and the results.
struct PlainLog: Sendable {
    /// The amount of output.
    enum Detail {
        /// Progress, notices and results.
        case everything
        /// Notices and results.
        case withoutProgress
        /// Failures only.
        case failures
    }

    private struct Running {
        var row: ProgressRow
        var saidTenth = 0
        var saidWait = ""
        var said: Duration
    }

    private let detail: Detail
    private var running: [Int: Running] = [:]
    private var lines: [String] = []
    private var summary = RunSummary()

    init(detail: Detail) { self.detail = detail }

    mutating func started(_ number: Int, _ options: DownloadOptions, now: Duration) {
        running[number] = Running(row: ProgressRow(number: number, options: options, now: now), said: now)
    }

    mutating func progressed(_ number: Int, _ snapshot: TransferSnapshot, now: Duration) {
        guard let index = running.index(forKey: number) else { return }
        let isFirst = running.values[index].row.snapshot.heldBytes == 0
        running.values[index].row.snapshot = snapshot
        running.values[index].row.updated = now
        // Bytes from an earlier run are not progress of this one.
        if isFirst { running.values[index].saidTenth = Self.tenth(snapshot) }
        guard detail == .everything, let text = Self.line(snapshot, running.values[index], now: now) else { return }
        running.values[index].said = now
        running.values[index].saidTenth = Self.tenth(snapshot)
        running.values[index].saidWait = snapshot.wait?.reason ?? ""
        append("\(TerminalSafeText.make(running.values[index].row.name)): \(text)")
    }

    mutating func noticed(_ number: Int, _ notice: TransferNotice) {
        guard detail != .failures else { return }
        // The notice already describes the wait that follows it.
        if notice.kind == .retrying { running[number]?.saidWait = notice.message }
        let name = running[number].map { TerminalSafeText.make($0.row.name) + ": " } ?? ""
        append(name + (notice.level == .warning ? "warning: " : "") + TerminalSafeText.make(notice.message))
    }

    mutating func traced(_ number: Int, _ line: String, now: Duration) {
        let row = running[number]?.row
        let seconds = row.map { (now - $0.began) / .seconds(1) } ?? 0
        let time = Double(Int(seconds * 1000)) / 1000
        append("* \(TerminalSafeText.make(row?.name ?? "")): \(time) s: \(TerminalSafeText.make(line))")
    }

    mutating func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>, now: Duration) {
        let row = running.removeValue(forKey: number)?.row
        summary.count(result, row)
        switch result {
        case .success(let completed):
            guard detail != .failures else { return }
            append(
                Phrases.summary(
                    of: completed, name: row?.name ?? "", resumed: row?.snapshot.resumedBytes ?? 0,
                    elapsed: now - (row?.began ?? now)))
        case .failure(let error) where error.code == .cancelled:
            if let row, detail != .failures { append(Phrases.kept(row)) }
        case .failure(let error):
            append("tow: " + Phrases.failure(error, row))
        }
    }

    mutating func closed(exitStatus: Int32, interrupted: Bool, now: Duration) {
        guard detail != .failures else { return }
        for line in summary.lines(wasInterrupted: interrupted, elapsed: now) { append(line) }
    }

    /// Returns whether there are lines that `take` has not returned yet.
    var hasNews: Bool { !lines.isEmpty }

    mutating func take() -> String {
        defer { lines.removeAll() }
        return lines.isEmpty ? "" : lines.joined(separator: "\n") + "\n"
    }

    private mutating func append(_ line: String) { lines.appendKeepingMost(line) }

    private static func tenth(_ snapshot: TransferSnapshot) -> Int { Int((snapshot.fractionCompleted ?? 0) * 10) }

    /// Returns whether a notice begins with the reason of a wait. The notice may add a detail in parentheses.
    private static func says(_ notice: String, _ reason: String) -> Bool {
        if notice.hasPrefix(reason) { return true }
        guard let start = notice.firstRange(of: " ("), let end = notice.firstRange(of: "), ") else { return false }
        return start.lowerBound < end.lowerBound
            && (notice[..<start.lowerBound] + ", " + notice[end.upperBound...]).hasPrefix(reason)
    }

    private static func line(_ snapshot: TransferSnapshot, _ entry: Running, now: Duration) -> String? {
        if let wait = snapshot.wait {
            return says(entry.saidWait, wait.reason) ? nil : Phrases.state(snapshot, since: .zero)
        }
        guard snapshot.state == .downloading else { return nil }
        let silence = now - entry.said
        let isTenth = tenth(snapshot) > entry.saidTenth && silence >= .seconds(1)
        guard isTenth || silence >= .seconds(10) else { return nil }
        var facts = [Phrases.sizes(snapshot)]
        if let fraction = snapshot.fractionCompleted { facts[0] = "\(Phrases.percent(fraction)), \(facts[0])" }
        if let rate = snapshot.rate { facts.append(Phrases.rate(rate)) }
        if let remaining = snapshot.remaining {
            facts.append("\(Phrases.time(.seconds(remaining.components.seconds))) left")
        }
        return facts.joined(separator: ", ")
    }
}

extension [String] {
    /// Appends a line. If nothing reads the lines and 10,000 have accumulated, drops the oldest half and adds a note.
    mutating func appendKeepingMost(_ line: String) {
        if count >= 10_000 {
            removeFirst(5_000)
            insert("(older messages are omitted: this output is read too slowly. Downloads are not affected)", at: 0)
        }
        append(line)
    }
}
