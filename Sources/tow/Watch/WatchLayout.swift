/// The division of a window by its height. A low window first loses the least important lines.
struct WatchLayout: Hashable, Sendable {
    /// The number of lines for downloads.
    let rows: Int
    /// `true` if the top line shows totals.
    let hasTotals: Bool
    /// `true` if a line below the rows describes the selected download.
    let hasDetail: Bool
    /// `true` if the bottom line shows the keys, a question or a notice.
    let hasHelp: Bool

    init(height: Int) {
        hasTotals = height >= 3
        hasHelp = height >= 2
        hasDetail = height >= 6
        rows = max(1, height - (hasTotals ? 1 : 0) - (hasHelp ? 1 : 0) - (hasDetail ? 1 : 0))
    }
}
