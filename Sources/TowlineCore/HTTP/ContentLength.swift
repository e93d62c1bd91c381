/// A parser of `Content-Length` (RFC 9110 §8.6).
package enum ContentLength {
    /// The result of parsing the `Content-Length` of a response.
    package enum Result: Hashable, Sendable {
        /// The field `Content-Length` is absent.
        case absent
        /// The length of the body in bytes.
        case length(Int64)
        /// The field is invalid. The response cannot be used (RFC 9112 §6.3 rule 5).
        case invalid
    }

    /// Reads all `Content-Length` lines as one list. Equal members count as one (RFC 9110 §8.6). Different members,
    /// signs, empty members and numbers beyond `Int64` make the field invalid.
    package static func parse(_ fields: HTTPFields) -> Result {
        // The usual case: one number.
        if let only = fields.value(named: "Content-Length"), let length = ASCII.number(only.utf8) {
            return .length(length)
        }
        let values = fields.values(named: "Content-Length")
        guard !values.isEmpty else { return .absent }
        var found: Int64?
        for value in values {
            var scanner = FieldScanner(value)
            repeat {
                scanner.skipWhitespace()
                guard let length = scanner.number(), found == nil || found == length else { return .invalid }
                found = length
                scanner.skipWhitespace()
            } while scanner.skip(",")
            guard scanner.isAtEnd else { return .invalid }
        }
        return found.map(Result.length) ?? .invalid
    }
}
