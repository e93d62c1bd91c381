/// Kinds of characters in pasted text. Texts are arrays of Unicode scalars, because the rules for links look at single
/// characters, and an array allows that in constant time.
enum PastedCharacters {
    static func string(_ text: some Sequence<UInt32>) -> String {
        var string = String.UnicodeScalarView()
        for character in text { if let scalar = Unicode.Scalar(character) { string.append(scalar) } }
        return String(string)
    }

    /// Returns whether `text` has `word`, in ASCII and lower case, at `index`, in upper or lower case.
    static func has(_ word: StaticString, in text: [UInt32], at index: Int) -> Bool {
        let count = word.utf8CodeUnitCount
        guard index + count <= text.count else { return false }
        return (0..<count).allSatisfy { lowercased(text[index + $0]) == UInt32(word.utf8Start[$0]) }
    }

    static func lowercased(_ character: UInt32) -> UInt32 {
        character >= 0x41 && character <= 0x5A ? character + 32 : character
    }

    static func isLetter(_ character: UInt32) -> Bool {
        let letter = lowercased(character)
        return letter >= 0x61 && letter <= 0x7A
    }

    static func isDigit(_ character: UInt32) -> Bool { character >= 0x30 && character <= 0x39 }

    static func isWord(_ character: UInt32) -> Bool {
        isLetter(character) || isDigit(character) || character == 0x5F
    }

    static func isOfScheme(_ character: UInt32) -> Bool {
        isLetter(character) || isDigit(character) || character == 0x2B || character == 0x2D || character == 0x2E
    }

    /// Returns whether a character is white space, or the byte order mark, which editors leave at the beginning.
    static func isSpace(_ character: UInt32) -> Bool {
        if character < 0x80 { return character == 0x20 || character >= 0x09 && character <= 0x0D }
        return character == 0xFEFF || Unicode.Scalar(character)?.properties.isWhitespace == true
    }

    static func trimmed(_ text: [UInt32]) -> ArraySlice<UInt32> {
        var text = text[...]
        while let first = text.first, isSpace(first) { text.removeFirst() }
        while let last = text.last, isSpace(last) { text.removeLast() }
        return text
    }

    private static let breaks = Set("<>\"`\\^{}|，。；：！？、“”„‘’‚「」『』〈〉«»‹›…→⇒•".unicodeScalars.map(\.value))

    /// Returns whether a character always ends a link.
    static func endsLink(_ character: UInt32) -> Bool {
        if isWord(character) { return false }
        return isSpace(character) || breaks.contains(character) || isInvisible(character)
    }

    /// Returns whether a character only affects how text is shown: the zero width space, the word joiner, soft hyphens
    /// and marks of the writing direction. The joiners U+200C and U+200D belong to words.
    private static func isInvisible(_ character: UInt32) -> Bool {
        switch character {
        case 0xAD, 0x200B, 0x200E, 0x200F, 0x202A...0x202E, 0x2060, 0x2066...0x2069: true
        default: false
        }
    }

    private static let brackets = Array("()[]（）【】《》〔〕".unicodeScalars.map(\.value))
    static let bracketPairs = 6

    /// Returns the pair of a bracket and whether it closes; `nil` for another character.
    static func bracket(_ character: UInt32) -> (pair: Int, closes: Bool)? {
        switch character {
        case 0x28, 0x29, 0x5B, 0x5D, 0x3008...0x3015, 0xFF08...0xFF09: break
        default: return nil
        }
        return brackets.firstIndex(of: character).map { ($0 / 2, $0 % 2 == 1) }
    }

    /// Returns whether a character belongs to a script without spaces between words (Han, Hiragana, Katakana), to
    /// Hangul, or is a bracket of these scripts.
    static func isCJK(_ character: UInt32) -> Bool {
        switch character {
        case ..<0x1100: false
        case 0x1100...0x11FF, 0x2E80...0x2FD5, 0x3005...0x3007, 0x300A...0x300B, 0x3010...0x3011, 0x3014...0x3015,
            0x3021...0x302F, 0x3038...0x303B, 0x3041...0x30FA, 0x30FC...0x318E, 0x31F0...0x4DBF, 0x4E00...0x9FFF,
            0xA960...0xA97C, 0xAC00...0xD7FB, 0xF900...0xFAFF, 0xFF08...0xFF09, 0xFF66...0xFFDC, 0x1B000...0x1B16F,
            0x20000...0x323AF:
            true
        default: false
        }
    }
}
