/// An entity tag: the value of `ETag`, which identifies a version of a file (RFC 9110 §8.8.3). Requests send
/// `fieldValue` byte for byte.
///
/// A value with invalid syntax, such as a value without quotes, is not a strong validator. An equal value in a later
/// response counts like a weak validator.
package struct EntityTag: Hashable, Sendable {
    /// The maximum length in bytes of an `ETag` value with invalid syntax; a longer value is treated as absent.
    private static let longestMalformed = 256

    /// The value of the field `ETag` as received, without white space around it.
    package let fieldValue: String
    /// `true` if the value of `ETag` has valid syntax, `[ "W/" ] DQUOTE *etagc DQUOTE`.
    package let isWellFormed: Bool
    /// `true` if the value of `ETag` begins with `W/`: an equal tag does not prove that two responses have the same
    /// bytes.
    package var isWeak: Bool { fieldValue.hasPrefix("W/") }
    /// `true` if an equal tag proves that two responses have the same bytes (a strong validator).
    package var isStrong: Bool { isWellFormed && !isWeak }

    /// Parses the value of the field `ETag`. `nil` for an empty value, control characters, and a long malformed value.
    /// Also `nil` for a tag with U+FFFD, which replaces bytes that were not UTF-8: such a tag cannot be sent back
    /// unchanged, and different tags would be equal.
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

    /// Returns whether both tags are strong and equal, which proves that two responses have the same bytes (RFC 9110
    /// §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        isStrong && other.isStrong && fieldValue.utf8.elementsEqual(other.fieldValue.utf8)
    }

    /// Returns whether the tags are equal without `W/` and, in addition to the RFC, without quotes (weak comparison,
    /// RFC 9110 §8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaqueTag.elementsEqual(other.opaqueTag) }

    /// Returns the valid entity tags in the value of the field `If-Match` or `If-None-Match` (RFC 9110 §13.1).
    package static func list(_ fieldValue: String) -> [EntityTag] {
        var scanner = FieldScanner(fieldValue)
        var tags: [EntityTag] = []
        while !scanner.isAtEnd {
            _ = scanner.take { $0 == 0x2C || $0 == 0x20 || $0 == 0x09 }
            // A comma inside the quotes belongs to the tag.
            var bytes = Array(scanner.take { $0 != 0x22 && $0 != 0x2C })
            if scanner.skip("\"") {
                bytes += [0x22] + scanner.take { $0 != 0x22 }
                if scanner.skip("\"") { bytes.append(0x22) }
            }
            if let tag = EntityTag(fieldValue: String(decoding: bytes, as: UTF8.self)), tag.isWellFormed {
                tags.append(tag)
            }
        }
        return tags
    }

    /// The entity tag without `W/` and without the quotes, for the weak comparison.
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
    /// Returns whether two entity tags have the same bytes. Strings would also be equal under canonical equivalence.
    package static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.fieldValue.utf8.elementsEqual(right.fieldValue.utf8)
    }

    /// Hashes the bytes of the entity tag, which `==` compares.
    package func hash(into hasher: inout Hasher) {
        for byte in fieldValue.utf8 { hasher.combine(byte) }
    }
}
