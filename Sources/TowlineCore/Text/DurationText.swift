/// Conversion of durations to text for people.
package enum DurationText {
    /// Returns a text such as `0:07`, `4:05`, `2 h 03 min` or `3 d 04 h`: two units. The duration is rounded to the
    /// nearest second, and smaller units are dropped. Negative durations count as zero.
    package static func format(_ duration: Duration) -> String {
        let seconds = rounded(duration)
        if seconds < 3600 { return "\(seconds / 60):\(twoDigits(seconds % 60))" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(twoDigits(seconds / 60 % 60)) min" }
        return "\(seconds / 86_400) d \(twoDigits(seconds / 3600 % 24)) h"
    }

    /// Returns a text for a sentence, such as `0.4 s`, `12 s`, `90 s` or `2 min 05 s`, and from an hour on the text of
    /// `format`. In a sentence, `0:12` could be a time of day.
    package static func inSentence(_ duration: Duration) -> String {
        let seconds = rounded(duration)
        if duration < .milliseconds(950) {
            let tenths = Int((max(.zero, duration) / .milliseconds(100)).rounded())
            return tenths == 0 ? "0 s" : "0.\(tenths) s"
        }
        if seconds < 120 { return "\(seconds) s" }
        return seconds < 3600 ? "\(seconds / 60) min \(twoDigits(seconds % 60)) s" : format(duration)
    }

    /// Returns the duration in whole seconds for display, rounded to the nearest; negative durations count as zero.
    private static func rounded(_ duration: Duration) -> Int64 {
        let (whole, attoseconds) = duration.components
        let half: Int64 = 500_000_000_000_000_000
        return max(0, attoseconds >= half && whole < Int64.max ? whole + 1 : whole)
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
