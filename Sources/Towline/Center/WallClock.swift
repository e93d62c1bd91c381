import Foundation

/// The time of day, for what people read. Nothing waits by it.
enum WallClock {
    /// Milliseconds since 1970.
    static var milliseconds: Int64 { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }
}

extension Date {
    /// A date of milliseconds since 1970.
    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
