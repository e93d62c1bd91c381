/// An entity tag (RFC 9110 §8.8.3). `fieldValue` goes back to the server byte for byte.
package struct EntityTag: Hashable, Sendable {
    /// The field value as it came, white space around it taken off.
    package let fieldValue: String
    /// Whether it begins with `W/`.
    package var isWeak: Bool { fieldValue.hasPrefix("W/") }

    /// `nil` unless `entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE`. Also `nil` for a tag with U+FFFD: that stands for
    /// bytes that were not UTF-8, which cannot go back as they came and would make different tags look the same.
    package init?(fieldValue: String) {
        let bytes = Array(fieldValue.utf8)
        let opaque = bytes.starts(with: [0x57, 0x2F]) ? bytes.dropFirst(2) : bytes[...]
        guard opaque.count >= 2, opaque.first == 0x22, opaque.last == 0x22,
            opaque.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) })
        else { return nil }
        guard !fieldValue.unicodeScalars.contains("\u{FFFD}") else { return nil }
        self.fieldValue = fieldValue
    }

    /// Strong comparison (RFC 9110 §8.8.3.2): both strong and the same.
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && fieldValue.utf8.elementsEqual(other.fieldValue.utf8)
    }

    /// Weak comparison (RFC 9110 §8.8.3.2): the same but for `W/`.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaqueTag.elementsEqual(other.opaqueTag) }

    private var opaqueTag: Substring.UTF8View { (isWeak ? fieldValue.dropFirst(2) : fieldValue[...]).utf8 }
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
