import TowlineCore
import TowlineWire

/// The content of `tow watch`: exactly as many lines as the window has, none wider than the window.
struct WatchScreen {
    let model: WatchModel
    let style: TerminalStyle
    /// `true` if a filter applies, so that the list may have downloads although the page is empty.
    let isFiltered: Bool
    let now: Duration

    /// Returns the whole window as one string for one `write`, which avoids flicker. The frame does not depend on the
    /// cursor position. Each line ends with a sequence that erases its rest: terminals differ in the effect of the last
    /// column.
    func frame() -> String {
        "\u{1B}[H" + lines().map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
    }

    /// Returns the lines, from top to bottom.
    func lines() -> [String] {
        // The last column stays free: terminals disagree on the cursor position after it is written.
        let width = max(1, model.width - 1)
        let layout = model.layout
        var lines = layout.hasTotals ? [headline(width)] : []
        var rows = rowLines(width)
        if !layout.hasHelp, let message = message(width) { rows[0] = message }
        lines += rows + Array(repeating: "", count: layout.rows - rows.count)
        if layout.hasDetail { lines.append(detail(width)) }
        if layout.hasHelp { lines.append(message(width) ?? help(width)) }
        return lines
    }

    // MARK: Top

    private func headline(_ width: Int) -> String {
        switch model.link {
        case .unknown: return cut("Connecting to towd …", width, .quiet)
        case .down:
            return cut("towd is not running. Waiting for it to start; 'tow add URL' starts it.", width, .attention)
        case .silent(let reason): return cut(reason, width, .attention)
        case .up:
            // A figure that does not fit is left out.
            var facts = facts()
            func text() -> String { facts.joined(separator: style.separator) }
            while !facts.isEmpty, TerminalSafeText.displayWidth(text()) > width { facts.removeLast() }
            return cut(text(), width, .strong)
        }
    }

    private func facts() -> [String] {
        guard let totals = model.totals else { return [] }
        var facts = [Phrases.rate(Double(totals.rate)), "\(totals.running) running"]
        for state in ["queued", "waiting", "paused", "failed", "finished", "cancelled"] {
            if let count = totals.counts[state], count > 0 { facts.append("\(count) \(state)") }
        }
        facts.append("\(totals.counts.values.reduce(0, +)) in the list")
        return facts
    }

    // MARK: Rows

    private func rowLines(_ width: Int) -> [String] {
        let shown = model.downloads.prefix(model.layout.rows)
        guard !shown.isEmpty else { return [emptiness(width)] }
        let names = shown.map { WatchLine.name($0) }
        let longest = names.map { TerminalSafeText.displayWidth($0) }.max() ?? 0
        let nameWidth = min(longest, max(12, width / 3), width)
        return shown.enumerated().map { number, download in
            WatchLine(
                download: download, isSelected: number == model.index, isLive: model.link == .up, nameWidth: nameWidth,
                style: style, now: now
            ).make(width: width)
        }
    }

    private func emptiness(_ width: Int) -> String {
        guard model.link == .up, model.totals != nil else { return "" }
        return cut(
            isFiltered
                ? "No downloads match the filter." : "The list of downloads is empty. 'tow add URL' adds a download.",
            width, .quiet)
    }

    // MARK: Bottom

    /// Returns details of the selected download that do not fit in its row.
    private func detail(_ width: Int) -> String {
        guard let download = model.selected else { return "" }
        var text = DownloadLines.short(download.id) + "  "
        if let error = download.error { text += error.message + style.separator }
        text += download.url + (style.unicode ? " → " : " > ") + DownloadLines.path(download)
        return cut(text, width, .quiet)
    }

    /// Returns the question or the notice, or `nil` if there is neither.
    private func message(_ width: Int) -> String? {
        if let question = model.question {
            func text(_ name: String) -> String {
                switch question.deed {
                case .cancel: "Cancel \(name)? Its downloaded data is deleted.  y: yes; other keys: no"
                case .remove: "Remove \(name) from the list?  y: yes; f: also delete its files; other keys: no"
                }
            }
            // Cut the name rather than the answers.
            let room = max(4, width - text("").count)
            return cut(text(TerminalSafeText.make(question.name, width: room)), width, .attention)
        }
        return model.notice.map { cut($0.text, width, $0.isBad ? .bad : .strong) }
    }

    private func help(_ width: Int) -> String {
        let more: String =
            switch (model.hasAbove, model.hasBelow) {
            case (true, true): "more above and below"
            case (true, false): "more above"
            case (false, true): "more below"
            case (false, false): ""
            }
        let keys = "q quit  p pause/resume  c cancel  r retry  x remove  arrows, PgUp/PgDn select"
        return cut(more.isEmpty ? keys : more + style.separator + keys, width, .quiet)
    }

    private func cut(_ text: String, _ width: Int, _ ink: TerminalStyle.Ink) -> String {
        style.paint(TerminalSafeText.make(text, width: width), ink)
    }
}
