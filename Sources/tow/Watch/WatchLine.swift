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
    private static let failedAction = "the follow-up action (such as unpacking) failed; 'tow retry ID' runs it again"

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
        let word = isUnderWay && !isLive ? "stopped" : download.state.rawValue
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
        case .failed: .bad
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
        case .finished, .cancelled: return TerminalSafeText.make(words, width: width)
        default: return line.standing(width, text: words, ink: download.state == .failed ? .bad : .quiet)
        }
    }

    /// The text beside the state and the bar.
    private var words: String {
        switch download.state {
        case .failed: return download.error?.message ?? sizes
        case .waiting: return [download.reason, sizes].compactMap { $0 }.joined(separator: style.separator)
        case .finished:
            guard let followUp = download.followUp else { return sizes }
            switch followUp.state {
            case .none, .done: return sizes
            case .running: return sizes + style.separator + "the follow-up action (such as unpacking) is running"
            case .failed: return sizes + style.separator + (followUp.reason ?? Self.failedAction)
            }
        case .cancelled: return ""
        case .queued, .connecting, .downloading, .verifying, .publishing, .paused: return sizes
        }
    }

    private var isUnderWay: Bool {
        switch download.state {
        case .connecting, .downloading, .verifying, .publishing: true
        case .queued, .finished, .paused, .waiting, .failed, .cancelled: false
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
