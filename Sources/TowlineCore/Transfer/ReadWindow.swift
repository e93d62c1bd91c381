/// The bytes that a reader of an incomplete file will read next.
package enum ReadWindow {
    /// The shortest move, in bytes, that changes the order in which bytes are requested.
    static let step: Int64 = 1 << 20

    /// Returns whether a move matters to the planner: the reader waits, had an empty window, or moved by at least
    /// `step`.
    package static func isNews(_ window: ByteRange, after old: ByteRange, isWaiting: Bool) -> Bool {
        let isFar = abs(window.lowerBound - old.lowerBound) >= step || window.upperBound - old.upperBound >= step
        return isWaiting || isFar || old.isEmpty
    }
}
