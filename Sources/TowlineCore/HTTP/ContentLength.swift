/// What `Content-Length` says (RFC 9110 §8.6).
package enum ContentLength {
    /// What was found.
    package enum Result: Hashable, Sendable {
        /// No such field.
        case absent
        /// The length in bytes.
        case length(Int64)
        /// The field makes no sense; RFC 9112 §6.3 rule 5: the response cannot be used.
        case invalid
    }

    /// Reads all `Content-Length` lines as one list. Several members that agree count as one (RFC 9110 §8.6);
    /// members that differ, signs, empty members and numbers beyond `Int64` make it invalid.
    package static func parse(_ fields: HTTPFields) -> Result {
        // One number, as nearly all are.
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
