/// Conversion between numbers of bytes and text. Units are always powers of 1024: `K`, `KB` and `KiB` all mean
/// 1,024 bytes.
package enum ByteCountText {
    private static let letters = Array("kmgtpe".utf8)

    /// Parses `123`, `500K`, `10M`, `1.5G`, `2TiB`. Case is ignored, and a fraction of a byte is dropped.
    ///
    /// - Throws: `unusableOption` for any other text: signs, spaces, a fraction without a unit, more than nine digits
    ///   of fraction, and counts beyond `Int64`.
    package static func parse(_ text: String) throws(TowlineError) -> Int64 {
        guard let count = count(text) else {
            let shown = TerminalSafeText.make(text, width: 40)
            throw TowlineError(
                .unusableOption, "invalid size '\(shown)': expected a number of bytes such as 500K, 10M or 1.5G")
        }
        return count
    }

    private static func count(_ text: String) -> Int64? {
        var scanner = FieldScanner(text)
        guard let whole = scanner.number() else { return nil }
        var fraction: ArraySlice<UInt8> = []
        if scanner.skip(".") {
            fraction = scanner.take(while: ASCII.isDigit)
            guard (1...9).contains(fraction.count) else { return nil }
        }
        guard let unit = unit(&scanner), scanner.isAtEnd, fraction.isEmpty || unit > 1 else { return nil }
        let (bytes, overflow) = whole.multipliedReportingOverflow(by: unit)
        guard !overflow else { return nil }
        guard let numerator = ASCII.number(fraction) else { return bytes }
        let denominator = fraction.reduce(Int64(1)) { power, _ in power * 10 }
        // The fraction is below one unit, so the quotient always fits.
        let product = numerator.multipliedFullWidth(by: unit)
        let (sum, carry) = bytes.addingReportingOverflow(denominator.dividingFullWidth(product).quotient)
        return carry ? nil : sum
    }

    private static func unit(_ scanner: inout FieldScanner) -> Int64? {
        guard let letter = scanner.next.map(ASCII.lowercased) else { return 1 }
        guard let power = letters.firstIndex(of: letter) else { return scanner.skip(word: "b") ? 1 : nil }
        _ = scanner.take()
        if scanner.skip(word: "i") {
            guard scanner.skip(word: "b") else { return nil }
        } else {
            _ = scanner.skip(word: "b")
        }
        return 1 << (10 * (Int64(power) + 1))
    }

    /// Returns a text such as `512 B` or `1.4 GiB`, with one digit after the point, rounded to the nearest.
    package static func format(_ count: Int64) -> String {
        let sign = count < 0 ? "-" : ""
        let magnitude = count.magnitude
        guard magnitude >= 1024 else { return "\(sign)\(magnitude) B" }
        var unit: UInt64 = 1024
        for name in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
            let tenths = roundedTenths(magnitude, unit)
            if tenths < 10_240 { return "\(sign)\(tenths / 10).\(tenths % 10) \(name)" }
            unit *= 1024
        }
        let tenths = roundedTenths(magnitude, unit)
        return "\(sign)\(tenths / 10).\(tenths % 10) EiB"
    }

    private static func roundedTenths(_ magnitude: UInt64, _ unit: UInt64) -> UInt64 {
        // The magnitude is at most 8 EiB. The remainder is below 2^60, so ten times the remainder is below 2^64.
        magnitude / unit * 10 + (magnitude % unit * 10 + unit / 2) / unit
    }
}
