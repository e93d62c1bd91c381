/// A JSON object (RFC 8259) that is built member by member, as text on one line. In addition to the characters that the
/// grammar requires, all control characters, line separators and bidirectional controls are escaped, so that the line
/// is safe on a terminal.
package struct JSONObject: Hashable, Sendable {
    private var text = "{"

    /// Creates a JSON object without members.
    package init() {}

    /// Adds a member with a text. The caller must use a different name for each member.
    package mutating func add(_ name: String, _ value: String) {
        begin(name)
        text += Self.quoted(value)
    }

    /// Adds a member with a text, unless the value is `nil`.
    package mutating func add(_ name: String, _ value: String?) {
        if let value { add(name, value) }
    }

    /// Adds a member with a whole number, unless the value is `nil`.
    package mutating func add(_ name: String, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        begin(name)
        text += String(value)
    }

    /// Adds a member with a number of seconds with three decimals, unless it is `nil`, not finite (JSON has no
    /// infinity) or beyond ±1e15.
    package mutating func add(_ name: String, seconds value: Double?) {
        guard let value, value.isFinite, abs(value) < 1e15 else { return }
        begin(name)
        let thousandths = Int64((value * 1000).rounded())
        let (whole, rest) = abs(thousandths).quotientAndRemainder(dividingBy: 1000)
        let digits = String(rest)
        text += (thousandths < 0 ? "-" : "") + "\(whole)." + String(repeating: "0", count: 3 - digits.count) + digits
    }

    /// Adds a member with the value `true` or `false`.
    package mutating func add(_ name: String, _ value: Bool) {
        begin(name)
        text += value ? "true" : "false"
    }

    /// Adds a member with the value `null`.
    package mutating func addNull(_ name: String) {
        begin(name)
        text += "null"
    }

    /// Adds a member with an array of texts.
    package mutating func add(_ name: String, _ values: [String]) {
        begin(name)
        text += "[" + values.map(Self.quoted).joined(separator: ",") + "]"
    }

    /// Adds a member with an array of ranges, each as `[first,end]`, the end not included.
    package mutating func add(_ name: String, ranges: [(Int64, Int64)]) {
        begin(name)
        text += "[" + ranges.map { "[\($0.0),\($0.1)]" }.joined(separator: ",") + "]"
    }

    /// Adds a member with another object.
    package mutating func add(_ name: String, _ object: JSONObject) {
        begin(name)
        text += object.closed
    }

    /// The JSON text of the whole object, with its closing brace.
    package var closed: String { text + "}" }

    /// Returns JSON text from another program, changed so that it is safe on a terminal. Unprintable characters are
    /// escaped; in JSON they can only be in strings.
    package static func printable(_ json: [UInt8]) -> String {
        var text = ""
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            text += isPrintable(scalar) ? String(scalar) : escaped(scalar)
        }
        return text
    }

    private mutating func begin(_ name: String) {
        if text.utf8.count > 1 { text += "," }
        text += Self.quoted(name) + ":"
    }

    private static func quoted(_ value: String) -> String {
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default: text += isPrintable(scalar) ? String(scalar) : escaped(scalar)
            }
        }
        return text + "\""
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        if (0x20..<0x7F).contains(scalar.value) { return true }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return false
        default: return true
        }
    }

    /// Returns the escape `\uXXXX` of a character (RFC 8259 §7): UTF-16 code units, two for a scalar beyond the first
    /// plane.
    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }
}
