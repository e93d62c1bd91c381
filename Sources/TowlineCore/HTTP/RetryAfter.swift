/// How long a server asks to wait (`Retry-After`, RFC 9110 §10.2.3).
package enum RetryAfter {
    /// No delay is longer; a number of seconds beyond it counts as this one.
    package static let longestDelay = Duration.seconds(1_000_000_000)

    /// The delay from the moment the response came; `nil` if there is no such field, it makes no sense, or two lines
    /// contradict each other.
    ///
    /// A date is taken relative to the response's own `Date`, so that a wrong clock on either side does no harm;
    /// without a `Date` it counts as absent. A date in the past means no delay.
    package static func delay(_ fields: HTTPFields) -> Duration? {
        guard let value = fields.value(named: "Retry-After") else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy(ASCII.isDigit) {
            guard let seconds = ASCII.number(value.utf8) else { return longestDelay }
            return min(.seconds(seconds), longestDelay)
        }
        guard let now = fields.value(named: "Date").flatMap({ HTTPDate(fieldValue: $0) }),
            let date = HTTPDate(fieldValue: value, now: now)
        else { return nil }
        // Both lie between the years 0 and 9999: the difference cannot overflow.
        return min(.seconds(max(0, date.secondsSince1970 - now.secondsSince1970)), longestDelay)
    }
}
