import Synchronization

/// The lines of the lists that the running downloads come from, by the numbers of the downloads in the batch. Holds
/// only running downloads, however long the list is.
final class ListPlaces: Sendable {
    /// A line of a list.
    struct Line: Hashable {
        /// The name of the list, safe to print.
        var list: String
        /// The number of the line, from 1.
        var line: Int

        /// The beginning of a message about the line.
        var text: String { "\(list), line \(line): " }
    }

    /// Unsorted: few downloads run at once, and most end without a lookup.
    private let places = Mutex<[(number: Int, list: Int, line: Int)]>([])
    private let names: [String]

    /// - Parameter names: the names of the lists, safe to print.
    init(names: [String] = []) { self.names = names }

    /// Records the line of a download that starts. `list` is the index of the list.
    func note(_ number: Int, list: Int, line: Int) { places.withLock { $0.append((number, list, line)) } }

    /// Returns the line of a running download; `nil` if it does not come from a list.
    func line(of number: Int) -> Line? {
        let found = places.withLock { places in places.first { $0.number == number } }
        return found.map { Line(list: names[$0.list], line: $0.line) }
    }

    /// Removes a download that has ended.
    func forget(_ number: Int) {
        places.withLock { places in
            guard let index = places.firstIndex(where: { $0.number == number }) else { return }
            places.swapAt(index, places.count - 1)
            places.removeLast()
        }
    }
}
