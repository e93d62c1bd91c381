import TowlineCore
import TowlineEngine

/// The output on a terminal: finished lines, which scroll away, and below them the running downloads, which are redrawn
/// in place. A frame is one string for one `write`, which avoids flicker.
struct TerminalBoard: Sendable {
    private let style: TerminalStyle
    private var rows: [ProgressRow] = []
    private var lines: [String] = []
    private var summary = RunSummary()
    /// The width in cells of each line of the redrawn part, from top to bottom.
    private var drawn: [Int] = []
    private var lastFrame: Duration?

    init(style: TerminalStyle) { self.style = style }

    // MARK: Events

    mutating func started(_ number: Int, _ options: DownloadOptions, now: Duration) {
        rows.insert(ProgressRow(number: number, options: options, now: now), at: rows.position(of: number))
    }

    mutating func progressed(_ number: Int, _ snapshot: TransferSnapshot, now: Duration) {
        guard let index = rows.index(of: number) else { return }
        rows[index].snapshot = snapshot
        rows[index].updated = now
    }

    mutating func noticed(_ number: Int, _ notice: TransferNotice) {
        let name = rows.index(of: number).map { TerminalSafeText.make(rows[$0].name, width: 40) + ": " } ?? ""
        let mark = notice.level == .warning ? style.warningMark : style.noteMark
        append("\(mark) \(name)\(TerminalSafeText.make(notice.message))")
    }

    mutating func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>, now: Duration) {
        let row = rows.index(of: number).map { rows.remove(at: $0) }
        summary.count(result, row)
        switch result {
        case .success(let completed):
            let text = Phrases.summary(
                of: completed, name: row?.name ?? "", resumed: row?.snapshot.resumedBytes ?? 0,
                elapsed: now - (row?.began ?? now))
            append("\(style.doneMark) \(text)")
        case .failure(let error) where error.code == .cancelled:
            if let row { append("\(style.warningMark) \(Phrases.kept(row))") }
        case .failure(let error):
            append("\(style.failedMark) \(Phrases.failure(error, row))")
        }
    }

    mutating func closed(exitStatus: Int32, interrupted: Bool, now: Duration) {
        for line in summary.lines(wasInterrupted: interrupted, elapsed: now) { append(line) }
    }

    private mutating func append(_ line: String) { lines.appendKeepingMost(line) }

    // MARK: Drawing

    /// Returns the bytes that update the terminal.
    ///
    /// - Parameter isLast: `true` for the last frame, which removes the running downloads.
    mutating func frame(width: Int, height: Int, now: Duration, isLast: Bool) -> String {
        let below = isLast ? [] : visibleLines(width: max(1, width - 1), height: height, now: now)
        if lines.isEmpty && below.isEmpty && drawn.isEmpty { return "" }
        var text = backToTop(width: width, now: now)
        for line in lines { text += line + "\u{1B}[K\n" }
        for line in below { text += line + "\u{1B}[K\n" }
        text += "\u{1B}[J"
        lines.removeAll()
        drawn = below.map { TerminalSafeText.displayWidth(Self.withoutEscapes($0)) }
        lastFrame = now
        return text
    }

    /// Returns the sequence that moves to the first drawn line. Lines that a narrower window has wrapped take more than
    /// one row. After a pause of the whole process, other programs may have written here: then the board is drawn again
    /// below.
    private func backToTop(width: Int, now: Duration) -> String {
        guard let lastFrame, now - lastFrame < .seconds(2) else { return "" }
        let height = drawn.reduce(0) { $0 + max(1, ($1 + width - 1) / max(1, width)) }
        return height > 0 ? "\r\u{1B}[\(height)A" : ""
    }

    private func visibleLines(width: Int, height: Int, now: Duration) -> [String] {
        guard !rows.isEmpty else { return [] }
        // Leave one row for the cursor and one for the line above.
        let room = max(1, height - 2)
        let needsTotal = rows.count > 1 || summary.finished + summary.failed > 0
        let shown = visibleRows(max(1, needsTotal ? room - 1 : room))
        let longest = shown.map { TerminalSafeText.displayWidth(TerminalSafeText.make($0.name)) }.max() ?? 0
        let nameWidth = min(longest, max(12, width / 3), width)
        var result = shown.map {
            ProgressLine(row: $0, now: now, style: style, nameWidth: nameWidth).make(width: width)
        }
        if needsTotal && room > 1 { result.append(total(hidden: rows.count - shown.count, width: width)) }
        return result
    }

    /// Returns the rows to show. If there is no room for all of them, idle downloads are left out first.
    private func visibleRows(_ room: Int) -> [ProgressRow] {
        guard rows.count > room else { return rows }
        let idle = rows.filter(\.isIdle)
        return Array((rows.filter { !$0.isIdle } + idle).prefix(room))
    }

    private func total(hidden: Int, width: Int) -> String {
        let waiting = rows.count { $0.snapshot.wait != nil }
        let rate = rows.reduce(0) { $0 + ($1.snapshot.rate ?? 0) }
        var facts = [
            "\(rows.count - waiting) running" + (waiting > 0 ? style.separator + "\(waiting) waiting" : "")
                + (hidden > 0 ? " (\(hidden) not shown)" : ""), "\(summary.finished) done",
        ]
        if summary.failed > 0 { facts.append("\(summary.failed) failed") }
        facts.append(Phrases.rate(rate))
        return style.paint(TerminalSafeText.make(facts.joined(separator: style.separator), width: width), .quiet)
    }

    /// Returns the text without color sequences, to count its cells.
    static func withoutEscapes(_ text: String) -> String {
        var result = ""
        var isEscape = false
        for scalar in text.unicodeScalars {
            if scalar == "\u{1B}" {
                isEscape = true
            } else if isEscape {
                isEscape = scalar != "m"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
