/// The ASCII form of host names with letters beyond ASCII (IDNA2008, RFC 5890 to 5892).
///
/// Towline converts names itself. libcurl's converter, libidn2, reads a name in the encoding of the process's locale,
/// so that it fails without a UTF-8 locale (cron, containers).
enum InternationalName {
    /// Returns the name in lower case with each label in ASCII or in its `xn--` form; `nil` if the text is not a host
    /// name.
    static func ascii(_ text: String) -> String? {
        let name = composed(text.lowercased())
        guard name.unicodeScalars.allSatisfy(mayStandInName) else { return nil }
        var labels: [String] = []
        for label in name.unicodeScalars.split(separator: ".", omittingEmptySubsequences: false) {
            guard let encoded = encoded(label) else { return nil }
            labels.append(encoded)
        }
        // A dot at the end is the root's; an empty label elsewhere is invalid.
        let named = labels.last?.isEmpty == true ? labels.dropLast() : labels[...]
        guard !named.isEmpty, !named.contains(where: \.isEmpty) else { return nil }
        return labels.joined(separator: ".")
    }

    /// Returns whether a Unicode scalar may be in a host name: ASCII letters, digits, `-`, `.` and `_`; beyond ASCII
    /// the letters, marks and digits that IDNA's mapping does not change (RFC 5892 §2: PVALID is unchanged by NFKC and
    /// case folding). No character can therefore become `/`, `@`, `:` or `.` after this check, as `／` and `℀` would.
    private static func mayStandInName(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            let byte = UInt8(truncatingIfNeeded: scalar.value)
            return ASCII.isDigit(byte) || ASCII.isLetter(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
        }
        // RFC 5892 §2.6: sharp s and final sigma are valid although folding changes them.
        if scalar == "\u{DF}" || scalar == "\u{3C2}" { return true }
        guard !scalar.properties.changesWhenNFKCCaseFolded else { return false }
        switch scalar.properties.generalCategory {
        case .lowercaseLetter, .otherLetter, .modifierLetter, .nonspacingMark, .spacingMark, .decimalNumber: return true
        default: return false
        }
    }

    // MARK: Composition

    /// Returns a host name with each letter and its marks as one scalar if Unicode has such a scalar (NFC): files and
    /// keyboards of some systems use `u` and a diaeresis for `ü`, which is a different name in DNS.
    private static func composed(_ text: String) -> String {
        var result = ""
        for character in text {
            let scalars = character.unicodeScalars
            guard scalars.count > 1, let first = scalars.first, let scalar = scalar(of: character, base: first) else {
                result.unicodeScalars.append(contentsOf: scalars)
                continue
            }
            result.unicodeScalars.append(scalar)
        }
        return result
    }

    /// Returns the single scalar that equals a character, or `nil`. Swift compares characters by canonical equivalence.
    private static func scalar(of character: Character, base: Unicode.Scalar) -> Unicode.Scalar? {
        let blocks: [ClosedRange<UInt32>] =
            switch base.value {
            case ..<0x1100: [0xC0...0x24F, 0x386...0x4FF, 0x1E00...0x1FFF]
            case 0x1100...0x11FF: [0xAC00...0xD7A3]
            case 0x3040...0x30FF: [0x3041...0x30FE]
            default: []
            }
        for value in blocks.joined() {
            if let scalar = Unicode.Scalar(value), Character(scalar) == character { return scalar }
        }
        return nil
    }

    // MARK: Punycode

    /// The maximum length in bytes of a label, a part of a name between dots (RFC 1035 §2.3.4).
    private static let longestLabel = 63

    private static func encoded(_ label: Substring.UnicodeScalarView) -> String? {
        if label.allSatisfy(\.isASCII) { return String(Substring(label)) }
        // A mark without a letter before it would join the dot (RFC 5891 §4.2.3.2).
        guard label.first?.properties.generalCategory != .nonspacingMark,
            label.first?.properties.generalCategory != .spacingMark
        else { return nil }
        let text = "xn--" + punycode(label.map(\.value))
        return text.utf8.count <= longestLabel ? text : nil
    }

    /// Returns a label (a part of a name between dots) in Punycode, without `xn--` (RFC 3492 §6.3). A host name has at
    /// most 254 bytes, so that no number overflows.
    private static func punycode(_ scalars: [UInt32]) -> String {
        var output = scalars.filter { $0 < 0x80 }.map { UInt8(truncatingIfNeeded: $0) }
        let basic = output.count
        if basic > 0 { output.append(0x2D) }
        var (handled, next, delta, bias) = (basic, 0x80, 0, 72)
        while handled < scalars.count {
            let least = Int(scalars.lazy.filter { $0 >= next }.min() ?? 0)
            delta += (least - next) * (handled + 1)
            next = least
            for scalar in scalars {
                if scalar < next { delta += 1 }
                guard scalar == next else { continue }
                append(delta, bias: bias, to: &output)
                bias = adapted(delta, count: handled + 1, isFirst: handled == basic)
                delta = 0
                handled += 1
            }
            delta += 1
            next += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends a number to Punycode output as an integer of variable length (RFC 3492 §3.3).
    private static func append(_ number: Int, bias: Int, to output: inout [UInt8]) {
        var (rest, place) = (number, 36)
        while true {
            let threshold = min(max(place - bias, 1), 26)
            guard rest >= threshold else { break }
            output.append(digit(threshold + (rest - threshold) % (36 - threshold)))
            rest = (rest - threshold) / (36 - threshold)
            place += 36
        }
        output.append(digit(rest))
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: value < 26 ? 0x61 + value : 0x30 + value - 26)
    }

    /// Returns the bias of the next number in Punycode (RFC 3492 §3.4).
    private static func adapted(_ delta: Int, count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / 700 : delta / 2
        delta += delta / count
        var steps = 0
        while delta > 455 {
            delta /= 35
            steps += 36
        }
        return steps + 36 * delta / (delta + 38)
    }
}
