/// A value that belongs to an attempt, one request of a download. The values are in arrays with a linear search: there
/// are few, and a dictionary took longer than the work for the single attempt of a small file.
package protocol OfAttempt {
    /// The identifier of the attempt that the value belongs to.
    var id: AttemptID { get }
}

extension Array where Element: OfAttempt {
    /// Returns the value of an attempt; `nil` if there is no such value.
    package subscript(id: AttemptID) -> Element? { first { $0.id == id } }

    /// Calls `body` to change the value that belongs to the attempt `id`, in place.
    ///
    /// - Returns: the result of `body`; `nil` if the attempt has no value.
    @discardableResult
    mutating func change<Result>(_ id: AttemptID, _ body: (inout Element) -> Result) -> Result? {
        firstIndex { $0.id == id }.map { body(&self[$0]) }
    }

    /// Removes and returns the value that belongs to the attempt `id`; `nil` if the attempt has no value.
    mutating func remove(_ id: AttemptID) -> Element? { firstIndex { $0.id == id }.map { remove(at: $0) } }
}
