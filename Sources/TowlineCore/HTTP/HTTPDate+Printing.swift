extension HTTPDate {
    /// 0000-01-01T00:00:00Z: the first date whose year has four digits, so that it can be printed.
    private static let earliest = HTTPDate(secondsSince1970: -62_167_219_200)
    /// 9999-12-31T23:59:59Z: the last date whose year has four digits, so that it can be printed.
    private static let latest = HTTPDate(secondsSince1970: 253_402_300_799)

    /// This date, or the nearest date whose year has four digits, so that it can be printed.
    var clamped: HTTPDate { min(max(self, Self.earliest), Self.latest) }

    /// The date as an IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`. A date outside the years 0 to 9999 is printed as
    /// the nearest one inside.
    package var fieldValue: String {
        let seconds = clamped.secondsSince1970
        let dayNumber = floorDivision(seconds, 86_400)
        let time = seconds - dayNumber * 86_400
        let date = CivilDate(dayNumber: dayNumber)
        // Day 0, 1 January 1970, was a Thursday: index 3 when Monday is 0.
        let dayName = Self.dayNames[Int((dayNumber % 7 + 10) % 7)]
        let month = Self.monthNames[Int(date.month - 1)]
        let clock = "\(padded(time / 3600)):\(padded(time / 60 % 60)):\(padded(time % 60))"
        return "\(dayName), \(padded(date.day)) \(month) \(padded(date.year, to: 4)) \(clock) GMT"
    }

    /// The date for programs, `1994-11-06T08:49:37Z` (RFC 3339). A date outside the years 0 to 9999 is printed as the
    /// nearest one inside.
    package var timestamp: String {
        let seconds = clamped.secondsSince1970
        let dayNumber = floorDivision(seconds, 86_400)
        let time = seconds - dayNumber * 86_400
        let date = CivilDate(dayNumber: dayNumber)
        let day = "\(padded(date.year, to: 4))-\(padded(date.month))-\(padded(date.day))"
        return "\(day)T\(padded(time / 3600)):\(padded(time / 60 % 60)):\(padded(time % 60))Z"
    }
}

private func padded(_ number: Int64, to width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}
