/// The window of a reader: the bytes of an incomplete file that the reader will read next.
package enum ReadWindow {
    /// The minimum distance in bytes that the window of a reader (the bytes it reads next) must move before the order
    /// of requests changes.
    static let step: Int64 = 1 << 20

    /// Returns whether a move of a reader's window (the bytes it reads next) changes the order of requests: its reader
    /// waits for bytes, its `old` window was empty, or it moved by at least `step`.
    package static func isNews(_ window: ByteRange, after old: ByteRange, isWaiting: Bool) -> Bool {
        let isFar = abs(window.lowerBound - old.lowerBound) >= step || window.upperBound - old.upperBound >= step
        return isWaiting || isFar || old.isEmpty
    }
}
