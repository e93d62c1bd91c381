/// Durations as people read them.
package enum DurationText {
    /// `0:07`, `4:05`, `2 h 03 min`, `3 d 04 h`: two units, rounded to the nearest second and then cut. Negative
    /// durations count as zero.
    package static func format(_ duration: Duration) -> String {
        let seconds = rounded(duration)
        if seconds < 3600 { return "\(seconds / 60):\(twoDigits(seconds % 60))" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(twoDigits(seconds / 60 % 60)) min" }
        return "\(seconds / 86_400) d \(twoDigits(seconds / 3600 % 24)) h"
    }

    /// `0.4 s`, `12 s`, `90 s`, `2 min 05 s`, from an hour on as `format`: a duration inside a sentence, where `0:12`
    /// could be a time of day.
    package static func inSentence(_ duration: Duration) -> String {
        let seconds = rounded(duration)
        if duration < .milliseconds(950) {
            let tenths = Int((max(.zero, duration) / .milliseconds(100)).rounded())
            return tenths == 0 ? "0 s" : "0.\(tenths) s"
        }
        if seconds < 120 { return "\(seconds) s" }
        return seconds < 3600 ? "\(seconds / 60) min \(twoDigits(seconds % 60)) s" : format(duration)
    }

    /// Whole seconds, rounded to the nearest; negative durations count as zero.
    private static func rounded(_ duration: Duration) -> Int64 {
        let (whole, attoseconds) = duration.components
        let half: Int64 = 500_000_000_000_000_000
        return max(0, attoseconds >= half && whole < Int64.max ? whole + 1 : whole)
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
