extension HTTPDate {
    /// Parses a date in any of the three forms of RFC 9110 §5.6.7: IMF-fixdate, RFC 850 and asctime.
    ///
    /// `nil` for another form, a day that the month does not have, or an hour beyond 23. Second 60, a leap second,
    /// counts as the first second of the next minute. The name of the day must be valid, but need not match the date.
    ///
    /// - Parameter now: The current date, which decides the century of RFC 850's two-digit year: the latest date at
    ///   most 50 years after `now`. With `nil`, 70–99 means 1970–1999 and 00–69 means 2000–2069.
    package init?(fieldValue: String, now: HTTPDate? = nil) {
        if let seconds = Self.plainFixdate(fieldValue) {
            self.init(secondsSince1970: seconds)
            return
        }
        var scanner = FieldScanner(fieldValue)
        let dayName = String(decoding: scanner.take(while: ASCII.isLetter), as: UTF8.self)
        let short = Self.dayNames.contains(dayName)
        guard short || Self.longDayNames.contains(dayName) else { return nil }
        let seconds: Int64?
        if scanner.skip(",") {
            guard scanner.skip(" ") else { return nil }
            seconds = short ? Self.fixdate(&scanner) : Self.rfc850(&scanner, now: now)
        } else {
            guard short, scanner.skip(" ") else { return nil }
            seconds = Self.asctime(&scanner)
        }
        guard let seconds, scanner.isAtEnd else { return nil }
        self.init(secondsSince1970: seconds)
        // Fails for the leap second after the last day of 9999.
        guard clamped == self else { return nil }
    }

    /// Reads an IMF-fixdate, the usual form, at fixed offsets and returns the seconds since 1970; `nil` if the date may
    /// have another form, which the full parser reads.
    private static func plainFixdate(_ text: String) -> Int64? {
        // Sun, 06 Nov 1994 08:49:37 GMT
        guard text.utf8.count == 29 else { return nil }
        return text.utf8.withContiguousStorageIfAvailable { bytes -> Int64? in
            func number(_ start: Int, _ count: Int) -> Int64? {
                var value: Int64 = 0
                for byte in bytes[start..<start + count] {
                    guard ASCII.isDigit(byte) else { return nil }
                    value = value * 10 + Int64(byte & 0x0F)
                }
                return value
            }
            func word(_ start: Int) -> UInt32 {
                UInt32(bytes[start]) << 16 | UInt32(bytes[start + 1]) << 8 | UInt32(bytes[start + 2])
            }
            guard dayWords.contains(word(0)), let month = monthWords.firstIndex(of: word(8)),
                bytes[3] == 0x2C, bytes[4] == 0x20, bytes[7] == 0x20, bytes[11] == 0x20, bytes[16] == 0x20,
                bytes[19] == 0x3A, bytes[22] == 0x3A, bytes[25] == 0x20, word(26) == 0x47_4D54,
                let day = number(5, 2), let year = number(12, 4), let hour = number(17, 2), hour < 24,
                let minute = number(20, 2), minute < 60, let second = number(23, 2), second < 60
            else { return nil }
            return seconds(
                year: year, month: Int64(month) + 1, day: day, time: hour * 3600 + minute * 60 + second)
        }.flatMap(\.self)
    }

    private static let dayWords = dayNames.map(word)
    private static let monthWords = monthNames.map(word)

    /// Returns the letters of a three-letter name of a day or month as one number, for fast comparison.
    private static func word(_ name: String) -> UInt32 { name.utf8.reduce(0) { $0 << 8 | UInt32($1) } }

    /// Reads a date in the usual form (IMF-fixdate) after the name of the day: `06 Nov 1994 08:49:37 GMT`. Returns the
    /// seconds since 1970, or `nil` for another form.
    private static func fixdate(_ scanner: inout FieldScanner) -> Int64? {
        guard let day = scanner.number(digits: 2), scanner.skip(" "), let month = monthNumber(&scanner),
            scanner.skip(" "), let year = scanner.number(digits: 4), scanner.skip(" "),
            let time = timeOfDay(&scanner), skipZone(&scanner)
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    /// Reads a date in the form of RFC 850 after the name of the day: `06-Nov-94 08:49:37 GMT`. Returns the seconds
    /// since 1970, or `nil` for another form.
    private static func rfc850(_ scanner: inout FieldScanner, now: HTTPDate?) -> Int64? {
        guard let day = scanner.number(digits: 2), scanner.skip("-"), let month = monthNumber(&scanner),
            scanner.skip("-"), let shortYear = scanner.number(digits: 2), scanner.skip(" "),
            let time = timeOfDay(&scanner), skipZone(&scanner)
        else { return nil }
        guard let now else {
            return seconds(year: shortYear + (shortYear >= 70 ? 1900 : 2000), month: month, day: day, time: time)
        }
        let limit = now.clamped.secondsSince1970 + 50 * 31_556_952  // 50 mean Gregorian years
        let thisYear = CivilDate(dayNumber: floorDivision(now.clamped.secondsSince1970, 86_400)).year
        let latest = min(thisYear - thisYear % 100 + 100, 9900) + shortYear
        for year in [latest, latest - 100, latest - 200] where year >= 0 {
            if let found = seconds(year: year, month: month, day: day, time: time), found <= limit { return found }
        }
        return nil
    }

    /// Reads a date in the form of asctime after the name of the day: `Nov  6 08:49:37 1994`. Returns the seconds since
    /// 1970, or `nil` for another form.
    private static func asctime(_ scanner: inout FieldScanner) -> Int64? {
        guard let month = monthNumber(&scanner), scanner.skip(" "),
            let day = scanner.skip(" ") ? scanner.number(digits: 1) : scanner.number(digits: 2), scanner.skip(" "),
            let time = timeOfDay(&scanner), scanner.skip(" "), let year = scanner.number(digits: 4)
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    private static func monthNumber(_ scanner: inout FieldScanner) -> Int64? {
        let name = String(decoding: scanner.take(while: ASCII.isLetter), as: UTF8.self)
        return monthNames.firstIndex(of: name).map { Int64($0) + 1 }
    }

    private static func timeOfDay(_ scanner: inout FieldScanner) -> Int64? {
        guard let hour = scanner.number(digits: 2), hour < 24, scanner.skip(":"),
            let minute = scanner.number(digits: 2), minute < 60, scanner.skip(":"),
            let second = scanner.number(digits: 2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    /// Skips the time zone, which is always `GMT` in upper case (RFC 9110 §5.6.7). Returns `false` for any other zone.
    private static func skipZone(_ scanner: inout FieldScanner) -> Bool {
        scanner.skip(" ") && scanner.skip("G") && scanner.skip("M") && scanner.skip("T")
    }

    private static func seconds(year: Int64, month: Int64, day: Int64, time: Int64) -> Int64? {
        CivilDate(year: year, month: month, day: day).map { $0.dayNumber * 86_400 + time }
    }

    static let dayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let longDayNames = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ]
    static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
