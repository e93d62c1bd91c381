/// The header fields of one request or response, in their original order. Names are compared without case (RFC 9110
/// §5.1). Values are kept byte for byte, without the white space around them.
package struct HTTPFields: Hashable, Sendable {
    /// A header field: one line with a name and a value.
    package struct Field: Hashable, Sendable {
        /// The name of the header field with its original case.
        package let name: String
        /// The value of the header field without surrounding white space.
        package let value: String
        /// A 6-bit hash of the name, with which a search by name skips most lines with other names.
        fileprivate let kind: UInt8

        /// Creates a header field from its name and value.
        package init(name: String, value: String) {
            self.name = name
            self.value = value
            kind = HTTPFields.kind(of: name)
        }
    }

    /// The header fields in the order in which they were sent or added.
    package private(set) var lines: [Field] = []
    /// A bit set of the hashes (`Field.kind`) of all names, so that a search for an absent name ends immediately. Each
    /// head is searched for twenty names, and most of them are absent.
    private var kinds: UInt64 = 0

    /// Creates an empty list of header fields.
    package init() {}

    /// Creates header fields from pairs of name and value.
    package init(_ pairs: [(String, String)]) {
        for (name, value) in pairs { append(name: name, value: value) }
    }

    /// Adds a header field at the end.
    package mutating func append(name: String, value: String) { append(Field(name: name, value: value)) }

    /// Adds a header field at the end.
    package mutating func append(_ field: Field) {
        // Most heads have at most 12 fields.
        if lines.isEmpty { lines.reserveCapacity(12) }
        lines.append(field)
        kinds |= 1 << UInt64(field.kind)
    }

    /// Returns the hash of a field name for `Field.kind`: a number below 64 that depends on its length and first
    /// letter, ignoring case.
    fileprivate static func kind(of name: String) -> UInt8 {
        let name = name.utf8
        let first = name.first.map(ASCII.lowercased) ?? 0
        return UInt8(truncatingIfNeeded: (name.count &* 5 &+ Int(first)) & 63)
    }

    /// Returns whether a line whose name has this hash (`Field.kind`) may exist; `false` proves that no such line
    /// exists.
    private func mayHave(_ kind: UInt8) -> Bool { kinds & (1 << UInt64(kind)) != 0 }

    /// Removes all header fields with the given name.
    package mutating func removeAll(named name: String) { lines.removeAll { HTTPFields.equalNames($0.name, name) } }

    /// Replaces the value of the last header field, if any. The parser of a response head calls this after it has read
    /// a continuation line of the field.
    package mutating func replaceLastValue(by value: String) {
        guard let last = lines.popLast() else { return }
        append(name: last.name, value: value)
    }

    /// Returns the values of all header fields with the given name, in order; empty if no field has the name.
    package func values(named name: String) -> [String] {
        let kind = Self.kind(of: name)
        guard mayHave(kind) else { return [] }
        var values: [String] = []
        for line in lines where line.kind == kind && HTTPFields.equalNames(line.name, name) {
            values.append(line.value)
        }
        return values
    }

    /// Returns the value of the first header field with the given name; `nil` if no field has the name.
    package func firstValue(named name: String) -> String? {
        let kind = Self.kind(of: name)
        guard mayHave(kind) else { return nil }
        return lines.first { $0.kind == kind && HTTPFields.equalNames($0.name, name) }?.value
    }

    /// Returns the value of the header fields with the given name; `nil` if no such field exists or their values
    /// differ.
    package func value(named name: String) -> String? {
        let kind = Self.kind(of: name)
        guard mayHave(kind) else { return nil }
        var first: String?
        for line in lines where line.kind == kind && HTTPFields.equalNames(line.name, name) {
            guard let known = first else {
                first = line.value
                continue
            }
            guard known.utf8.elementsEqual(line.value.utf8) else { return nil }
        }
        return first
    }

    /// Returns whether a header field with the given name exists.
    package func has(_ name: String) -> Bool {
        let kind = Self.kind(of: name)
        return mayHave(kind) && lines.contains { $0.kind == kind && HTTPFields.equalNames($0.name, name) }
    }

    /// Returns whether these fields and `other` are sent as the same bytes. `==` is not sufficient: it treats two
    /// spellings of "é" as equal.
    package func isSameOnWire(as other: HTTPFields) -> Bool {
        // The requests for small files mostly share one array.
        isSameArray(as: other)
            || lines.count == other.lines.count
                && lines.elementsEqual(other.lines) {
                    HTTPFields.sameBytes($0.name, $1.name) && HTTPFields.sameBytes($0.value, $1.value)
                }
    }

    private func isSameArray(as other: HTTPFields) -> Bool {
        lines.withUnsafeBufferPointer { own in
            other.lines.withUnsafeBufferPointer { $0.baseAddress == own.baseAddress && $0.count == own.count }
        }
    }

    private static func sameBytes(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        return left.utf8.withContiguousStorageIfAvailable { left in
            right.utf8.withContiguousStorageIfAvailable { right in left.elementsEqual(right) }
        }.flatMap(\.self) ?? left.utf8.elementsEqual(right.utf8)
    }

    /// Returns whether two field names are equal, ignoring ASCII case.
    package static func equalNames(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        // A zip of two strings' bytes takes several times as long, and each head is searched for twenty names.
        return left.utf8.withContiguousStorageIfAvailable { left in
            right.utf8.withContiguousStorageIfAvailable { right in equalBytes(left, right) }
        }.flatMap(\.self) ?? left.utf8.elementsEqual(right.utf8) { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }

    private static func equalBytes(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in left.indices where left[index] != right[index] {
            guard ASCII.lowercased(left[index]) == ASCII.lowercased(right[index]) else { return false }
        }
        return true
    }
}

/// Classification and conversion of ASCII bytes.
package enum ASCII {
    /// Returns the byte with A–Z converted to a–z.
    package static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
