/// The fields of one response head or request, in the order they came, names compared without case
/// (RFC 9110 §5.1). Values are kept byte for byte, less the white space around them.
package struct HTTPFields: Hashable, Sendable {
    /// One field line.
    package struct Field: Hashable, Sendable {
        /// The name as it came.
        package let name: String
        /// The value without surrounding white space.
        package let value: String
        /// Which of sixty-four kinds the name is of: most names differ from another one in it already.
        fileprivate let kind: UInt8

        /// Makes a field line.
        package init(name: String, value: String) {
            self.name = name
            self.value = value
            kind = HTTPFields.kind(of: name)
        }
    }

    /// The field lines in order.
    package private(set) var lines: [Field] = []
    /// Of which kinds the names are, a bit for each: a head is asked for twenty names, most of which no server sends.
    private var kinds: UInt64 = 0

    /// No fields.
    package init() {}

    /// Fields from name and value pairs.
    package init(_ pairs: [(String, String)]) {
        for (name, value) in pairs { append(name: name, value: value) }
    }

    /// Adds a line at the end.
    package mutating func append(name: String, value: String) { append(Field(name: name, value: value)) }

    /// Adds a line at the end.
    package mutating func append(_ field: Field) {
        // As many as most heads have.
        if lines.isEmpty { lines.reserveCapacity(12) }
        lines.append(field)
        kinds |= 1 << UInt64(field.kind)
    }

    /// A number below 64 for a name, the same however it is written: of its length and its first letter.
    fileprivate static func kind(of name: String) -> UInt8 {
        let name = name.utf8
        let first = name.first.map(ASCII.lowercased) ?? 0
        return UInt8(truncatingIfNeeded: (name.count &* 5 &+ Int(first)) & 63)
    }

    /// Whether there may be a line whose name is of that kind.
    private func mayHave(_ kind: UInt8) -> Bool { kinds & (1 << UInt64(kind)) != 0 }

    /// Removes all lines with that name.
    package mutating func removeAll(named name: String) { lines.removeAll { HTTPFields.equalNames($0.name, name) } }

    /// Gives the last line, if there is one, another value.
    package mutating func replaceLastValue(by value: String) {
        guard let last = lines.popLast() else { return }
        append(name: last.name, value: value)
    }

    /// The values of all lines with that name, in order.
    package func values(named name: String) -> [String] {
        let kind = Self.kind(of: name)
        guard mayHave(kind) else { return [] }
        var values: [String] = []
        for line in lines where line.kind == kind && HTTPFields.equalNames(line.name, name) {
            values.append(line.value)
        }
        return values
    }

    /// The value of the first line with that name.
    package func firstValue(named name: String) -> String? {
        let kind = Self.kind(of: name)
        guard mayHave(kind) else { return nil }
        return lines.first { $0.kind == kind && HTTPFields.equalNames($0.name, name) }?.value
    }

    /// The value of the only line with that name; `nil` if there is none, or several that differ.
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

    /// Whether a line with that name is there.
    package func has(_ name: String) -> Bool {
        let kind = Self.kind(of: name)
        return mayHave(kind) && lines.contains { $0.kind == kind && HTTPFields.equalNames($0.name, name) }
    }

    /// Whether both are sent as the same bytes. `==` does not say it: it takes two spellings of "é" for one text.
    package func isSameOnWire(as other: HTTPFields) -> Bool {
        // Those of small files are mostly one array.
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

    /// Whether two field names are the same: ASCII without case.
    package static func equalNames(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        // A zip of two strings' bytes takes several times as long, and each head is compared with twenty names.
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

/// What ASCII says of single bytes.
package enum ASCII {
    /// The byte with A–Z made a–z.
    package static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
