import TowlineCore
import TowlineEngine

/// What is known of one running download, and since when.
struct ProgressRow {
    /// Its number in the order of reading.
    let number: Int
    /// What was asked for; what to call it until its name is known.
    private let options: DownloadOptions?
    /// When its turn came.
    let began: Duration
    /// Where it stands.
    var snapshot = TransferSnapshot()
    /// When it stood there.
    var updated: Duration

    init(number: Int, options: DownloadOptions, now: Duration) {
        self.number = number
        self.options = options
        began = now
        updated = now
    }

    /// A row of which only the figures are wanted.
    init(snapshot: TransferSnapshot) {
        number = 0
        options = nil
        began = .zero
        updated = .zero
        self.snapshot = snapshot
    }

    /// Whether nothing of it is on its way.
    var isIdle: Bool { snapshot.wait != nil || snapshot.state == .queued }

    /// Whose certificates are trusted instead of the system's.
    var authorityFile: String? { options?.connection.certificateAuthorityFile }

    /// The final name, or what comes nearest; not yet safe to print.
    var name: String { snapshot.name ?? options.map(Phrases.name) ?? "" }
}

extension [ProgressRow] {
    /// Where a row with that number is or belongs; rows are in order of their numbers.
    func position(of number: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Where the row with that number is.
    func index(of number: Int) -> Int? {
        let position = position(of: number)
        return position < count && self[position].number == number ? position : nil
    }
}

/// One line for one running download, as wide as there is room.
struct ProgressLine {
    let row: ProgressRow
    let now: Duration
    let style: TerminalStyle
    /// Cells for the name; a shorter one is padded, so that bars stand below each other.
    let nameWidth: Int

    private static let gap = "  "
    private static let leastBar = 10

    /// The line, at most `width` cells.
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

    /// Bar and columns. Columns are given up from the least telling one on until the bar has room.
    func running(_ width: Int) -> String {
        var columns = Self.columns(of: row.snapshot, style: style)
        while columns.count > 1, Self.leastBar + Self.cost(columns) > width {
            guard let least = columns.indices.max(by: { columns[$0].rank < columns[$1].rank }) else { break }
            columns.remove(at: least)
        }
        let barWidth = min(60, width - Self.cost(columns))
        let texts = columns.map { Self.padded($0.text, $0.width, right: true) }
        guard barWidth >= 3 else { return TerminalSafeText.make(texts.joined(separator: Self.gap), width: width) }
        return ([bar(barWidth)] + texts).joined(separator: Self.gap)
    }

    private struct Column {
        let text: String
        let width: Int
        /// 0 is given up last.
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

    /// A short bar, and in words what goes on.
    func standing(_ width: Int, text: String, ink: TerminalStyle.Ink) -> String {
        let barWidth = 16
        guard row.snapshot.heldBytes > 0, let fraction = row.snapshot.fractionCompleted, width >= barWidth + 30 else {
            return style.paint(TerminalSafeText.make(text, width: width), ink)
        }
        let percent = Self.padded(Phrases.percent(fraction), 4, right: true)
        let used = barWidth + 4 + 2 * Self.gap.count
        let shown = style.paint(TerminalSafeText.make(text, width: width - used), ink)
        return [bar(barWidth), percent, shown].joined(separator: Self.gap)
    }

    /// The text with spaces to `width` cells; longer text stays as it is.
    static func padded(_ text: String, _ width: Int, right: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - TerminalSafeText.displayWidth(text)))
        return right ? spaces + text : text + spaces
    }
}
