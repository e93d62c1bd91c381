/// How a window of some height is divided: what is least missed goes first where it is low.
struct WatchLayout: Hashable, Sendable {
    /// Lines for downloads.
    let rows: Int
    /// A line of sums at the top.
    let hasTotals: Bool
    /// A line about the selected download below the rows.
    let hasDetail: Bool
    /// A line at the bottom: the keys; a question, or what was just said.
    let hasHelp: Bool

    init(height: Int) {
        hasTotals = height >= 3
        hasHelp = height >= 2
        hasDetail = height >= 6
        rows = max(1, height - (hasTotals ? 1 : 0) - (hasHelp ? 1 : 0) - (hasDetail ? 1 : 0))
    }
}
