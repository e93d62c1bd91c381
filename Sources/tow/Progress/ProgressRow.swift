import TowlineCore
import TowlineEngine

/// The state of one running download, and the time of its last change.
struct ProgressRow {
    /// The number of the download, in the order in which the batch was read.
    let number: Int
    /// The options of the download. They give its name until the file name is known.
    private let options: DownloadOptions?
    /// The time at which the download started.
    let began: Duration
    /// The most recent snapshot of the transfer.
    var snapshot = TransferSnapshot()
    /// The time of the most recent snapshot.
    var updated: Duration

    init(number: Int, options: DownloadOptions, now: Duration) {
        self.number = number
        self.options = options
        began = now
        updated = now
    }

    /// Creates a row for a line that shows only figures.
    init(snapshot: TransferSnapshot) {
        number = 0
        options = nil
        began = .zero
        updated = .zero
        self.snapshot = snapshot
    }

    /// Returns whether the download is waiting or queued, so that it receives no data.
    var isIdle: Bool { snapshot.wait != nil || snapshot.state == .queued }

    /// The file of certificates that are trusted instead of the system's (`--cacert`), or `nil`.
    var authorityFile: String? { options?.connection.certificateAuthorityFile }

    /// The final name, or the best guess until it is known. Not safe to print.
    var name: String { snapshot.name ?? options.map(Phrases.name) ?? "" }
}

extension [ProgressRow] {
    /// Returns the index of the row with this number, or the index at which to insert it. Rows are sorted by number.
    func position(of number: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the index of the row with this number, or `nil` if there is no such row.
    func index(of number: Int) -> Int? {
        let position = position(of: number)
        return position < count && self[position].number == number ? position : nil
    }
}

/// One line for one running download, adapted to the available width.
struct ProgressLine {
    let row: ProgressRow
    let now: Duration
    let style: TerminalStyle
    /// The width of the name column in cells. Shorter names are padded, so that the bars are aligned.
    let nameWidth: Int

    private static let gap = "  "
    private static let leastBar = 10

    /// Returns the line, at most `width` cells wide.
    func make(width: Int) -> String {
        let name = TerminalSafeText.make(row.name, width: nameWidth)
        let label = Self.padded(name, nameWidth)
        let room = width - nameWidth - Self.gap.count
        guard room >= 4 else { return TerminalSafeText.make(row.name, width: width) }
        let rest = row.snapshot.wait == nil && hasRunningState ? running(room) : standing(room)
        return label + Self.gap + rest
    }

    private var hasRunningState: Bool {
        switch row.snapshot.state {
        case .downloading: true
        default: false
        }
    }

    // MARK: Running

    /// Returns the bar and the columns. Drops columns by rank, least important first, until the bar fits.
    func running(_ width: Int) -> String {
        var columns = Self.columns(of: row.snapshot, style: style)
        while columns.count > 1, Self.leastBar + Self.cost(columns) > width {
            guard let least = columns.indices.max(by: { columns[$0].rank < columns[$1].rank }) else { break }
            columns.remove(at: least)
        }
        let barWidth = min(60, width - Self.cost(columns))
        let texts = columns.map { Self.padded($0.text, $0.width, right: true) }
        guard barWidth >= 3 else {
            // A figure that does not fit is left out: a part of it would be another figure.
            let text = texts.joined(separator: Self.gap)
            if TerminalSafeText.displayWidth(text) <= width { return text }
            return columns.map(\.text).first { TerminalSafeText.displayWidth($0) <= width } ?? ""
        }
        return ([bar(barWidth)] + texts).joined(separator: Self.gap)
    }

    private struct Column {
        let text: String
        let width: Int
        /// The importance: the column with rank 0 is dropped last.
        let rank: Int
    }

    private static func columns(of snapshot: TransferSnapshot, style: TerminalStyle) -> [Column] {
        let times = style.unicode ? "×" : "x"
        var columns: [Column] = []
        if let fraction = snapshot.fractionCompleted {
            columns.append(Column(text: Phrases.percent(fraction), width: 4, rank: 0))
        }
        columns.append(Column(text: Phrases.sizes(snapshot), width: 22, rank: 3))
        columns.append(Column(text: snapshot.rate.map(Phrases.rate) ?? "", width: 12, rank: 1))
        if snapshot.completeLength != nil {
            let text = snapshot.remaining.map(DurationText.format) ?? ""
            columns.append(Column(text: text, width: max(7, text.count), rank: 2))
        }
        columns.append(Column(text: "\(times)\(snapshot.connections)", width: 4, rank: 4))
        return columns
    }

    private static func cost(_ columns: [Column]) -> Int { columns.reduce(0) { $0 + $1.width + gap.count } }

    private func bar(_ width: Int) -> String {
        guard let fraction = row.snapshot.fractionCompleted, let length = row.snapshot.completeLength else {
            let step = Int((now / .milliseconds(125)).rounded(.down))
            return ProgressBar.wandering(step: max(0, step), width: width, style: style)
        }
        let resumed = length == 0 ? 0 : Double(row.snapshot.resumedBytes) / Double(length)
        return ProgressBar.make(fraction: fraction, resumed: resumed, width: width, style: style)
    }

    // MARK: Waiting, connecting, verifying

    private func standing(_ width: Int) -> String {
        standing(
            width, text: Phrases.state(row.snapshot, since: now - row.updated),
            ink: row.snapshot.wait == nil ? .quiet : .attention)
    }

    /// Returns a short bar and `text`, which describes the state.
    func standing(_ width: Int, text: String, ink: TerminalStyle.Ink) -> String {
        standing(width, ink: ink) { Self.words(text, $0, style) }
    }

    /// Returns a short bar and the text that `text` returns for the room that is left.
    func standing(_ width: Int, ink: TerminalStyle.Ink, text: (Int) -> String) -> String {
        let barWidth = 16
        guard row.snapshot.heldBytes > 0, let fraction = row.snapshot.fractionCompleted, width >= barWidth + 30 else {
            return style.paint(text(width), ink)
        }
        let percent = Self.padded(Phrases.percent(fraction), 4, right: true)
        let shown = style.paint(text(width - (barWidth + 4 + 2 * Self.gap.count)), ink)
        return [bar(barWidth), percent, shown].joined(separator: Self.gap)
    }

    /// Shortens a text to `width` cells between two words. A number before the cut is dropped, because a number without
    /// its unit is another number.
    static func words(_ text: String, _ width: Int, _ style: TerminalStyle) -> String {
        let text = TerminalSafeText.make(text)
        guard TerminalSafeText.displayWidth(text) > width else { return text }
        let mark = style.unicode ? "…" : "..."
        var words = text.split(separator: " ")
        func isTooLong() -> Bool {
            TerminalSafeText.displayWidth(words.joined(separator: " ") + mark) > width
        }
        while !words.isEmpty, isTooLong() || words.last?.contains(where: \.isNumber) == true { words.removeLast() }
        return words.isEmpty ? "" : words.joined(separator: " ") + mark
    }

    /// Pads the text with spaces to `width` cells. Longer text is returned unchanged.
    static func padded(_ text: String, _ width: Int, right: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - TerminalSafeText.displayWidth(text)))
        return right ? spaces + text : text + spaces
    }
}
