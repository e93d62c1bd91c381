/// A parser of the delay that a server requests before the next request (`Retry-After`, RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The maximum delay that `Retry-After` can request; a greater number of seconds counts as this delay.
    package static let longestDelay = Duration.seconds(1_000_000_000)

    /// Returns the delay from the arrival of the response; `nil` if the field is absent or invalid, or if two lines
    /// contradict each other.
    ///
    /// A date is relative to the response's own `Date`, so that a wrong clock on either side has no effect;
    /// without a `Date` the field counts as absent. A date in the past means no delay.
    package static func delay(_ fields: HTTPFields) -> Duration? {
        guard let value = fields.value(named: "Retry-After") else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy(ASCII.isDigit) {
            guard let seconds = ASCII.number(value.utf8) else { return longestDelay }
            return min(.seconds(seconds), longestDelay)
        }
        guard let now = fields.value(named: "Date").flatMap({ HTTPDate(fieldValue: $0) }),
            let date = HTTPDate(fieldValue: value, now: now)
        else { return nil }
        // Both dates are between the years 0 and 9999: the difference cannot overflow.
        return min(.seconds(max(0, date.secondsSince1970 - now.secondsSince1970)), longestDelay)
    }
}
