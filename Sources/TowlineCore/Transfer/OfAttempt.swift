/// Something that belongs to an attempt.
///
/// A download has as many as it has connections: they are in arrays, and found by looking through them. To hash the one
/// id of a small file, and to move what is under it there and back, took longer than what was done with it.
package protocol OfAttempt {
    /// Whose it is.
    var id: AttemptID { get }
}

extension Array where Element: OfAttempt {
    /// What belongs to an attempt.
    package subscript(id: AttemptID) -> Element? { first { $0.id == id } }

    /// Changes what belongs to an attempt, where it is.
    ///
    /// - Returns: what `body` does; `nil` if there is nothing to change.
    @discardableResult
    mutating func change<Result>(_ id: AttemptID, _ body: (inout Element) -> Result) -> Result? {
        firstIndex { $0.id == id }.map { body(&self[$0]) }
    }

    /// Takes out what belongs to an attempt.
    mutating func remove(_ id: AttemptID) -> Element? { firstIndex { $0.id == id }.map { remove(at: $0) } }
}
