/// Makes text from servers, such as file names and header fields, safe to print on a terminal.
///
/// An escape sequence in a file name or a header could rewrite what the terminal shows, or run commands in some
/// terminals (CVE-2004-1488, CWE-150); bidirectional controls can make `exe.fdp` look like another name.
package enum TerminalSafeText {
    /// Returns the text with every control character, bidirectional control, invisible format character and line or
    /// paragraph separator shown as an escape (`\x1b`, `\u202e`), cut to `width` cells with `…` at the end (`nil`: not
    /// cut).
    ///
    /// The result is for people, not for programs: backslashes are not escaped, so the conversion cannot be reversed.
    package static func make(_ text: String, width: Int? = nil) -> String {
        if text.utf8.count <= width ?? .max, text.utf8.allSatisfy({ $0 < 0x7F && $0 >= 0x20 }) { return text }
        let pieces = text.map { $0.unicodeScalars.map(visible).joined() }
        let safe = pieces.joined()
        guard let width, displayWidth(safe) > width else { return safe }
        guard width > 0 else { return "" }
        var cut = ""
        for piece in pieces {
            // The whole text is measured: a mark may join the character before it and make it wider.
            let longer = cut + piece
            guard displayWidth(longer) < width else { break }
            cut = longer
        }
        return cut + "…"
    }

    /// Returns the number of terminal cells that a text takes: 2 for wide characters and emoji, 0 for combining marks.
    package static func displayWidth(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + CharacterWidth.cells($1) }
    }

    private static func visible(_ scalar: Unicode.Scalar) -> String {
        // The character may stand for a byte of a name that is not UTF-8.
        if let byte = ByteText.byte(scalar) { return "\\x" + String(byte, radix: 16) }
        guard isHidden(scalar) else { return String(Character(scalar)) }
        let digits = String(scalar.value, radix: 16)
        switch scalar.value {
        case ..<0x100: return "\\x" + String(repeating: "0", count: 2 - digits.utf8.count) + digits
        case ..<0x1_0000: return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        default: return "\\u{\(digits)}"
        }
    }

    /// Returns whether a character must be shown as an escape. Joiners are not escaped: scripts and emoji need them,
    /// and they move no text.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return ASCII.isControl(UInt8(truncatingIfNeeded: scalar.value)) }
        if scalar == "\u{200C}" || scalar == "\u{200D}" { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        case .unassigned: return scalar.properties.isDefaultIgnorableCodePoint
        default: return false
        }
    }
}
