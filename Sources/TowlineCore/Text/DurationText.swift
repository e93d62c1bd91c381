/// Durations as people read them.
package enum DurationText {
    /// `0:07`, `4:05`, `2 h 03 min`, `3 d 04 h`: two units, rounded to the nearest second and then cut. Negative
    /// durations count as zero.
    package static func format(_ duration: Duration) -> String {
        let (whole, attoseconds) = duration.components
        let half: Int64 = 500_000_000_000_000_000
        let seconds = max(0, attoseconds >= half && whole < Int64.max ? whole + 1 : whole)
        if seconds < 3600 { return "\(seconds / 60):\(twoDigits(seconds % 60))" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(twoDigits(seconds / 60 % 60)) min" }
        return "\(seconds / 86_400) d \(twoDigits(seconds / 3600 % 24)) h"
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
