/// A position in the list: a number of pages from its start or its end. The cursors of the pages before lead to it, so
/// that only the visible page is requested, however long the list is.
struct WatchPlace: Hashable, Sendable {
    /// `true` if pages are counted from the end. They are then requested in reverse order.
    private(set) var isFromEnd: Bool
    /// The cursor at the end of each page before this one.
    private(set) var cursors: [String] = []

    /// The first page.
    static let beginning = WatchPlace(isFromEnd: false)
    /// The last page.
    static let end = WatchPlace(isFromEnd: true)

    private init(isFromEnd: Bool) { self.isFromEnd = isFromEnd }

    /// The cursor at which the page begins. `nil` for the first page in this direction.
    var cursor: String? { cursors.last }

    /// Returns the page below.
    ///
    /// - Parameter next: the cursor of the page after this one, in the direction of the request.
    /// - Returns: `nil` if there is no page below.
    func below(next: String?) -> WatchPlace? { isFromEnd ? back : forth(next) }

    /// Returns the page above; `nil` if there is no page above.
    func above(next: String?) -> WatchPlace? { isFromEnd ? forth(next) : back }

    /// The page before this one in the direction of the request. Used when this page is empty.
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
