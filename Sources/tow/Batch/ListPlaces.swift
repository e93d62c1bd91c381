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

    /// In no order: few run at once, and most end without being looked for.
    private let places = Mutex<[(number: Int, list: Int, line: Int)]>([])
    private let names: [String]

    /// - Parameter names: of the lists, fit for a terminal.
    init(names: [String] = []) { self.names = names }

    /// One begins, of a list by its index.
    func note(_ number: Int, list: Int, line: Int) { places.withLock { $0.append((number, list, line)) } }

    /// Where it stands; `nil`: in no list.
    func place(of number: Int) -> Place? {
        let found = places.withLock { places in places.first { $0.number == number } }
        return found.map { Place(list: names[$0.list], line: $0.line) }
    }

    /// It has ended.
    func forget(_ number: Int) {
        places.withLock { places in
            guard let index = places.firstIndex(where: { $0.number == number }) else { return }
            places.swapAt(index, places.count - 1)
            places.removeLast()
        }
    }
}
