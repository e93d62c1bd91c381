/// A day of the Gregorian calendar (extended to all years 0 to 9999). Converts the dates of header fields to and from
/// the number of days since 1970.
struct CivilDate {
    let year: Int64
    let month: Int64
    let day: Int64

    /// Creates a day from its year, month (1 … 12) and day of the month; `nil` if the month does not have this day.
    init?(year: Int64, month: Int64, day: Int64) {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...12).contains(month), day >= 1, day <= lengths[Int(month - 1)] else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Creates the day that is `dayNumber` days after 1 January 1970.
    init(dayNumber: Int64) {
        // Years are counted from March, so that the leap day is the last of its year; 146,097 days are 400 years.
        let shifted = dayNumber + 719_468
        let era = floorDivision(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The number of days since 1 January 1970.
    var dayNumber: Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = floorDivision(shiftedYear, 400)
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

/// Returns the quotient rounded down, also for negative dividends, so that times before 1970 get the correct day.
func floorDivision(_ dividend: Int64, _ divisor: Int64) -> Int64 {
    let quotient = dividend / divisor
    return dividend % divisor < 0 ? quotient - 1 : quotient
}
