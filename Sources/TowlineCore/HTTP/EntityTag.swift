/// An entity tag (RFC 9110 §8.8.3). `fieldValue` goes back to the server byte for byte.
///
/// A value that breaks the syntax, such as one without quotes, is no strong validator. It is kept, because the same
/// value in a later response is as good as an unchanged weak one.
package struct EntityTag: Hashable, Sendable {
    /// The longest value without the syntax of an entity tag that is kept.
    private static let longestMalformed = 256

    /// The field value as it came, white space around it taken off.
    package let fieldValue: String
    /// True if the value is `[ "W/" ] DQUOTE *etagc DQUOTE`.
    package let isWellFormed: Bool
    /// True if the value begins with `W/`.
    package var isWeak: Bool { fieldValue.hasPrefix("W/") }
    /// True for a strong validator.
    package var isStrong: Bool { isWellFormed && !isWeak }

    /// `nil` for an empty value, control characters, and a malformed value that is long. Also `nil` for a tag with
    /// U+FFFD: that stands for bytes that were not UTF-8, which cannot go back as they came and would make different
    /// tags look the same.
    package init?(fieldValue: String) {
        let bytes = Array(fieldValue.utf8)
        guard !fieldValue.unicodeScalars.contains("\u{FFFD}") else { return nil }
        let opaque = bytes.starts(with: [0x57, 0x2F]) ? bytes.dropFirst(2) : bytes[...]
        isWellFormed =
            opaque.count >= 2 && opaque.first == 0x22 && opaque.last == 0x22
            && opaque.dropFirst().dropLast().allSatisfy { $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }
        self.fieldValue = fieldValue
        guard !isWellFormed else { return }
        guard bytes.count <= Self.longestMalformed, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), !opaqueTag.isEmpty
        else { return nil }
    }

    /// Strong comparison (RFC 9110 §8.8.3.2): both strong and the same.
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        isStrong && other.isStrong && fieldValue.utf8.elementsEqual(other.fieldValue.utf8)
    }

    /// Weak comparison (RFC 9110 §8.8.3.2): the same but for `W/`, and here also but for missing quotes.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaqueTag.elementsEqual(other.opaqueTag) }

    /// The value without `W/` and without the quotes.
    private var opaqueTag: Substring.UTF8View {
        var opaque = fieldValue[...]
        if opaque.hasPrefix("W/") || opaque.hasPrefix("w/") { opaque = opaque.dropFirst(2) }
        if opaque.utf8.count >= 2, opaque.hasPrefix("\""), opaque.hasSuffix("\"") {
            opaque = opaque.dropFirst().dropLast()
        }
        return opaque.utf8
    }
}

extension EntityTag {
    /// The same bytes. Strings alone would also be equal when they only look the same (canonical equivalence).
    package static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.fieldValue.utf8.elementsEqual(right.fieldValue.utf8)
    }

    /// Feeds the bytes.
    package func hash(into hasher: inout Hasher) {
        for byte in fieldValue.utf8 { hasher.combine(byte) }
    }
}
