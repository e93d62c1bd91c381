/// Which page of the list is looked at: so many pages from its beginning, or from its end. What leads there are the
/// cursors of the pages passed, so that however long the list is, only the page in sight is asked for.
struct WatchPlace: Hashable, Sendable {
    /// Counted from the list's end: the service is asked for the list the other way round.
    private(set) var isFromEnd: Bool
    /// Where each page passed on the way here ended.
    private(set) var cursors: [String] = []

    /// The first page.
    static let beginning = WatchPlace(isFromEnd: false)
    /// The last.
    static let end = WatchPlace(isFromEnd: true)

    private init(isFromEnd: Bool) { self.isFromEnd = isFromEnd }

    /// Where the page begins.
    var cursor: String? { cursors.last }

    /// The page below.
    ///
    /// - Parameter next: where the page after this one begins, in the direction in which this one was asked for.
    /// - Returns: `nil` if there is none.
    func below(next: String?) -> WatchPlace? { isFromEnd ? back : forth(next) }

    /// The page above; `nil` if there is none.
    func above(next: String?) -> WatchPlace? { isFromEnd ? forth(next) : back }

    /// One page nearer to where counting began, for when nothing is left on this one.
    var back: WatchPlace? {
        guard !cursors.isEmpty else { return nil }
        var place = self
        place.cursors.removeLast()
        return place
    }

    private func forth(_ next: String?) -> WatchPlace? {
        guard let next else { return nil }
        var place = self
        place.cursors.append(next)
        return place
    }
}
