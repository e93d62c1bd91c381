/// The result of a check that failed: the expected checksum of a file, and the checksum of the downloaded bytes.
package struct ChecksumMismatch: Hashable, Sendable, CustomStringConvertible {
    /// The checksum that the user or the server gave for the file.
    package let expected: Checksum
    /// The checksum computed from the bytes; `nil` if the system's OpenSSL refuses the algorithm.
    package let found: Checksum?

    /// Creates the result of a failed check from the expected and the computed checksum.
    package init(expected: Checksum, found: Checksum?) {
        self.expected = expected
        self.found = found
    }

    /// The expected and the computed checksum as text, for an error message.
    package var description: String {
        guard let found else {
            return "expected \(expected), but OpenSSL on this system cannot compute \(expected.algorithm.rawValue)"
                + " (use another algorithm)"
        }
        return "expected \(expected), got \(found)"
    }
}
