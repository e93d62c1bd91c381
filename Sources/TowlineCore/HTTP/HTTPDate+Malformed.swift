extension HTTPDate {
    /// Reads dates that break the syntax of RFC 9110 §5.6.7 and that servers send as Last-Modified: with a zone other
    /// than `GMT` (`+0000`, `UTC`, none), without the name of the day, with one digit for the day, in other letters, or
    /// as ISO 8601. Such a date is at most a weak validator. `nil` for any other text.
    package init?(malformedFieldValue value: String) {
        var scanner = FieldScanner(value)
        if let seconds = Self.isoDate(&scanner) ?? Self.mailDate(value) {
            self.init(secondsSince1970: seconds)
        } else {
            return nil
        }
    }

    /// Reads `2024-01-01T00:00:00.000Z`, also with a space instead of `T`. Returns the seconds since 1970, or `nil` for
    /// another form.
    private static func isoDate(_ scanner: inout FieldScanner) -> Int64? {
        guard let year = scanner.number(digits: 4), scanner.skip("-"), let month = scanner.number(digits: 2),
            scanner.skip("-"), let day = scanner.number(digits: 2), scanner.skip(word: "T") || scanner.skip(" ")
        else { return nil }
        return seconds(year: year, month: month, day: day, &scanner)
    }

    /// Reads `[Mon, ]1 Jan 2024 00:00:00 +0000`, also with hyphens. Returns the seconds since 1970, or `nil` for
    /// another form.
    private static func mailDate(_ value: String) -> Int64? {
        var scanner = FieldScanner(value)
        _ = scanner.take(while: ASCII.isLetter)
        _ = scanner.skip(",")
        scanner.skipWhitespace()
        guard let day = scanner.number(), scanner.skip(" ") || scanner.skip("-"),
            let month = monthNames.firstIndex(where: { name in
                var ahead = scanner
                let word = String(decoding: ahead.take(while: ASCII.isLetter), as: UTF8.self)
                return ASCII.lowercased(String(word.prefix(3))) == ASCII.lowercased(name)
            })
        else { return nil }
        _ = scanner.take(while: ASCII.isLetter)
        guard scanner.skip(" ") || scanner.skip("-"), let year = scanner.number(digits: 4), scanner.skip(" ") else {
            return nil
        }
        return seconds(year: year, month: Int64(month) + 1, day: day, &scanner)
    }

    /// Reads a time `00:00:00`, a fraction and a zone, up to the end of the text. Returns the seconds since 1970 with
    /// the given date; `nil` for another form.
    private static func seconds(year: Int64, month: Int64, day: Int64, _ scanner: inout FieldScanner) -> Int64? {
        guard let hour = scanner.number(digits: 2), hour < 24, scanner.skip(":"),
            let minute = scanner.number(digits: 2), minute < 60, scanner.skip(":"),
            let second = scanner.number(digits: 2), second <= 60,
            let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        if scanner.skip(".") { _ = scanner.take(while: ASCII.isDigit) }
        scanner.skipWhitespace()
        guard let zone = zone(&scanner), scanner.isAtEnd else { return nil }
        return date.dayNumber * 86_400 + hour * 3600 + minute * 60 + second - zone
    }

    /// Reads a time zone (none, a name of UTC, `+0100` or `+01:00`) and returns its offset from UTC in seconds; `nil`
    /// for another zone.
    private static func zone(_ scanner: inout FieldScanner) -> Int64? {
        guard scanner.next == 0x2B || scanner.next == 0x2D else {
            let name = ASCII.lowercased(String(decoding: scanner.take(while: ASCII.isLetter), as: UTF8.self))
            return ["", "gmt", "utc", "ut", "z"].contains(name) ? 0 : nil
        }
        let sign: Int64 = scanner.take() == 0x2D ? -1 : 1
        guard let hours = scanner.number(digits: 2) else { return nil }
        _ = scanner.skip(":")
        guard let minutes = scanner.number(digits: 2), hours < 24, minutes < 60 else { return nil }
        return sign * (hours * 3600 + minutes * 60)
    }
}
