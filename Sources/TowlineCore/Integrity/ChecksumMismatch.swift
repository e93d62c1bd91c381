/// A checksum that does not hold: what the bytes should hash to, and what they do.
package struct ChecksumMismatch: Hashable, Sendable, CustomStringConvertible {
    /// What was expected.
    package let expected: Checksum
    /// What the bytes hash to; `nil` where the system's library refuses the algorithm.
    package let found: Checksum?

    /// Makes one.
    package init(expected: Checksum, found: Checksum?) {
        self.expected = expected
        self.found = found
    }

    /// Both, for a message.
    package var description: String {
        guard let found else {
            return "expected \(expected), but OpenSSL on this system cannot compute \(expected.algorithm.rawValue)"
                + " (use another algorithm)"
        }
        return "expected \(expected), got \(found)"
    }
}
