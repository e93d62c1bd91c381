/// The `Range` header field of a request for content of a known length (RFC 9110 §14.2).
enum RangeField: Hashable, Sendable {
    /// The whole file: no range, several ranges, an unknown unit, or an invalid range.
    case whole
    /// A range of at least one byte.
    case part(Range<Int64>)
    /// A range that contains no byte of the file.
    case unsatisfiable

    /// Parses the value of the field.
    ///
    /// A request for several ranges gets the whole file, as §14.2 allows. Players request a single range.
    init(_ value: String?, length: Int64) {
        self = .whole
        guard let value, let equals = value.firstIndex(of: "="), value[..<equals].lowercased() == "bytes" else {
            return
        }
        let text = value[value.index(after: equals)...].filter { $0 != " " && $0 != "\t" }
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return }
        func number(_ text: Substring) -> Int64? {
            guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            // A number that overflows is beyond the end of every file.
            return Int64(text) ?? .max
        }
        switch (number(ends[0]), number(ends[1])) {
        case (nil, let suffix?) where ends[0].isEmpty:
            self = suffix == 0 || length == 0 ? .unsatisfiable : .part(max(0, length - suffix)..<length)
        case (let first?, nil) where ends[1].isEmpty:
            self = first < length ? .part(first..<length) : .unsatisfiable
        case (let first?, let last?) where first <= last:
            self = first < length ? .part(first..<(min(last, length - 1) + 1)) : .unsatisfiable
        default: break
        }
    }
}
