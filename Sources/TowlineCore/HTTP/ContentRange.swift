/// A parsed `Content-Range` field (RFC 9110 §14.4), which names the part of the file that a response contains.
package enum ContentRange: Hashable, Sendable {
    /// `bytes 0-99/1234` or `bytes 0-99/*`: the range of the body and, unless `*`, the complete length. The range is
    /// never empty and never ends beyond the complete length.
    case satisfied(ByteRange, completeLength: Int64?)
    /// `bytes */1234`: the file contains no byte of the requested range. Sent with 416.
    case unsatisfied(completeLength: Int64)

    /// Parses the value of the field. `nil` for an invalid value (RFC 9110 §14.4: last before first, a complete length
    /// not above last), another unit, `*/*`, a number beyond `Int64`, or other text around it. The bytes of such a
    /// response are never joined with others.
    package init?(fieldValue: String) {
        var scanner = FieldScanner(fieldValue)
        guard scanner.skip(word: "bytes"), scanner.skip(" ") else { return nil }
        if scanner.skip("*") {
            guard scanner.skip("/"), let length = scanner.number(), scanner.isAtEnd else { return nil }
            self = .unsatisfied(completeLength: length)
            return
        }
        guard let first = scanner.number(), scanner.skip("-"), let last = scanner.number(), scanner.skip("/"),
            first <= last, last < Int64.max
        else { return nil }
        var completeLength: Int64?
        if !scanner.skip("*") {
            guard let length = scanner.number(), length > last else { return nil }
            completeLength = length
        }
        guard scanner.isAtEnd else { return nil }
        self = .satisfied(ByteRange(first, last + 1), completeLength: completeLength)
    }
}
