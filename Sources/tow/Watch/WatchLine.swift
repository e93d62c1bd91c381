import TowlineCore
import TowlineWire

/// The row of one download in `tow watch`.
struct WatchLine {
    let download: Wire.Download
    let isSelected: Bool
    /// `true` if towd runs. Otherwise no download is running.
    let isLive: Bool
    /// The width of the name column in cells. Shorter names are padded, so that the bars are aligned.
    let nameWidth: Int
    let style: TerminalStyle
    let now: Duration

    private static let gap = "  "
    private static let stateWidth = 11

    /// Returns the line, at most `width` cells wide.
    func make(width: Int) -> String {
        let marker = isSelected ? style.paint(style.unicode ? "▸ " : "> ", .strong) : Self.gap
        guard width >= Self.gap.count + 4 else { return TerminalSafeText.make(plainName, width: width) }
        let label = ProgressLine.padded(TerminalSafeText.make(plainName, width: nameWidth), nameWidth)
        let name = isSelected ? style.paint(label, .strong) : label
        let room = width - 2 * Self.gap.count - nameWidth
        guard room >= Self.stateWidth else {
            let name = TerminalSafeText.make(plainName, width: width - Self.gap.count)
            return marker + (isSelected ? style.paint(name, .strong) : name)
        }
        // A download that was running when towd stopped is not running now, and resumes when towd runs again.
        let word = isUnderWay && !isLive ? "stopped" : isFailed ? "failed" : download.state.rawValue
        let state = style.paint(ProgressLine.padded(word, Self.stateWidth), ink)
        let rest = room - Self.stateWidth - Self.gap.count
        let figures = rest < 4 ? "" : figures(rest)
        return marker + name + Self.gap + state + (figures.isEmpty ? "" : Self.gap + figures)
    }

    private var plainName: String { Self.name(download) }

    /// Returns the short name of a download: its file name, else the last component of its URL. Safe to print.
    static func name(_ download: Wire.Download) -> String {
        let guess = download.name ?? (try? HTTPURL(parsing: download.url))?.displayName
        return TerminalSafeText.make(guess ?? download.url)
    }

    private var ink: TerminalStyle.Ink {
        switch download.state {
        case .failed, .followUpFailed: .bad
        case .finished: .good
        case .waiting: .attention
        case .connecting, .downloading, .verifying, .publishing, .queued, .paused, .cancelled:
            isUnderWay && isLive ? .strong : .quiet
        }
    }

    private func figures(_ width: Int) -> String {
        let line = ProgressLine(row: ProgressRow(snapshot: snapshot), now: now, style: style, nameWidth: 0)
        switch download.state {
        case .downloading where isLive: return line.running(width)
        case .finished, .followUpFailed: return words(width)
        case .cancelled: return ""
        case .queued, .connecting, .downloading, .verifying, .publishing, .paused, .waiting, .failed:
            return line.standing(width, ink: download.state == .failed ? .bad : .quiet, text: words)
        }
    }

    /// Returns the text beside the state and the bar: a short reason and the sizes. Sizes that do not fit are left out.
    private func words(_ width: Int) -> String {
        let figures = download.state.isComplete ? [sizes] : [sizes, percent]
        let fitting = figures.first { TerminalSafeText.displayWidth($0) <= width } ?? ""
        guard let sentence else { return fitting }
        let whole = download.state == .finished ? [sizes, sentence] : [sentence, sizes]
        let both = whole.joined(separator: style.separator)
        if !isFailed, TerminalSafeText.displayWidth(TerminalSafeText.make(both)) <= width {
            return both
        }
        return ProgressLine.words(sentence, width, style)
    }

    private var percent: String { DownloadLines.fraction(download).map { Phrases.percent($0) } ?? "" }

    /// The reason of the state, or the state of the follow-up action, in one short sentence; `nil` without either.
    private var sentence: String? {
        switch download.state {
        case .failed, .waiting, .queued, .followUpFailed: return DownloadLines.shortReason(download)
        case .finished:
            return download.followUp?.state == .running ? "the follow-up action (such as unpacking) is running" : nil
        case .connecting, .downloading, .verifying, .publishing, .paused, .cancelled: return nil
        }
    }

    private var isFailed: Bool { download.state == .failed || download.state == .followUpFailed }

    private var isUnderWay: Bool {
        switch download.state {
        case .connecting, .downloading, .verifying, .publishing: true
        case .queued, .finished, .paused, .waiting, .failed, .cancelled, .followUpFailed: false
        }
    }

    private var sizes: String { DownloadLines.sizes(download) }

    /// The download as the snapshot of a transfer, so that `ProgressLine` can show it.
    private var snapshot: TransferSnapshot {
        var snapshot = TransferSnapshot()
        snapshot.state = .downloading
        snapshot.completeLength = download.completeLength
        snapshot.heldBytes = download.heldBytes
        snapshot.resumedBytes = max(0, download.heldBytes - download.receivedBytes)
        snapshot.rate = download.rate.map { Double($0) }
        snapshot.remaining = download.remaining.map { .seconds($0) }
        snapshot.connections = download.connections
        return snapshot
    }
}
