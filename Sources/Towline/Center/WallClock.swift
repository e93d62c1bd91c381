import Foundation

/// The time of day, for display and for stored times. Never used to wait, because the user can change the clock.
enum WallClock {
    /// The current time in milliseconds since 1970.
    static var milliseconds: Int64 { Int64((Date().timeIntervalSince1970 * 1000).rounded()) }
}

extension Date {
    /// Creates a date from milliseconds since 1970.
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
