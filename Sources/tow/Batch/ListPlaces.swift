import Synchronization

/// Where in which list the downloads stand that have begun and have not ended, by their numbers in the batch. As many as run
/// at once, however long the list is.
final class ListPlaces: Sendable {
    /// A line of a list.
    struct Place: Hashable {
        /// The list's name, fit for a terminal.
        var list: String
        /// From 1.
        var line: Int

        /// As messages begin.
        var text: String { "\(list), line \(line): " }
    }

    private let places = Mutex<[Int: Place]>([:])

    /// One begins.
    func note(_ number: Int, _ place: Place) { places.withLock { $0[number] = place } }

    /// Where it stands; `nil`: in no list.
    func place(of number: Int) -> Place? { places.withLock { $0[number] } }

    /// It has ended.
    func forget(_ number: Int) { places.withLock { _ = $0.removeValue(forKey: number) } }
}
