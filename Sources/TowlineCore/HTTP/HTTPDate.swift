/// A point in time with a resolution of one second (RFC 9110 §5.6.7). Parsing is in `HTTPDate+Parsing.swift`.
package struct HTTPDate: Hashable, Sendable, Comparable {
    /// The number of seconds since 1970-01-01T00:00:00Z, without leap seconds.
    package let secondsSince1970: Int64

    /// Creates a date from a number of seconds since 1970-01-01T00:00:00Z.
    package init(secondsSince1970: Int64) { self.secondsSince1970 = secondsSince1970 }

    /// Returns whether the left date is earlier.
    package static func < (left: HTTPDate, right: HTTPDate) -> Bool { left.secondsSince1970 < right.secondsSince1970 }
}
