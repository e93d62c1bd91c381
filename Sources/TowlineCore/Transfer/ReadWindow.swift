/// What somebody who reads a file while it arrives will read next.
package enum ReadWindow {
    /// A move that is shorter than this changes nothing about what is fetched first.
    static let step: Int64 = 1 << 20

    /// Whether the plan has to hear of a move: the reader waits, wanted nothing before, or went on by a good deal.
    package static func isNews(_ window: ByteRange, after old: ByteRange, isWaiting: Bool) -> Bool {
        let isFar = abs(window.lowerBound - old.lowerBound) >= step || window.upperBound - old.upperBound >= step
        return isWaiting || isFar || old.isEmpty
    }
}
