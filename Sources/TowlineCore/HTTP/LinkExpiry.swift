/// The expiry time of a signed link (a URL with a signature that permits access for a while), according to its query.
///
/// A hint: the server's clock decides, and the signing key may be revoked earlier. A wrong hint costs an unnecessary
/// request for a new link, but no data.
package enum LinkExpiry {
    /// Returns the earliest expiry time in the query, in seconds since 1970; `nil` if the query contains no such time.
    ///
    /// - `X-Amz-Date` and `X-Amz-Expires` (AWS Signature Version 4), `X-Goog-Date` and `X-Goog-Expires` (Google Cloud
    ///   Storage V4): a time and a number of seconds after it.
    /// - `Expires` (CloudFront, S3 V2, Google V2 and others): Unix seconds.
    /// - `se` beside `sig` (Azure's shared access signatures): ISO 8601.
    package static func secondsSince1970(_ url: HTTPURL) -> Int64? {
        guard let query = url.query else { return nil }
        let values = parameters(query)
        var ends: [Int64] = []
        for vendor in ["x-amz-", "x-goog-"] {
            guard let date = values[vendor + "date"].flatMap(basicTime),
                let lifetime = values[vendor + "expires"].flatMap({ ASCII.number($0) })
            else { continue }
            let (end, overflow) = date.addingReportingOverflow(lifetime)
            if !overflow { ends.append(end) }
        }
        if let end = values["expires"].flatMap({ ASCII.number($0) }), isTime(end) { ends.append(end) }
        if values["sig"] != nil, let end = values["se"].flatMap(extendedTime) { ends.append(end) }
        return ends.min()
    }

    /// Returns whether the value of a parameter such as `Expires` is a time from 2001 to 5138. Smaller values are
    /// relative, larger values are not seconds.
    private static func isTime(_ value: Int64) -> Bool { (1_000_000_000..<100_000_000_000).contains(value) }

    /// Returns the first value of each query parameter, percent-decoded, by the parameter's name in lower case.
    private static func parameters(_ query: Substring) -> [String: [UInt8]] {
        var values: [String: [UInt8]] = [:]
        for pair in query.split(separator: "&") {
            guard let equals = pair.firstIndex(of: "="), let name = PercentEncoding.decoded(pair[..<equals]),
                let value = PercentEncoding.decoded(pair[pair.index(after: equals)...])
            else { continue }
            let key = ASCII.lowercased(String(decoding: name, as: UTF8.self))
            if values[key] == nil { values[key] = value }
        }
        return values
    }

    // MARK: ISO 8601

    /// Parses a time in a signed link, such as `20130524T000000Z` in `X-Amz-Date`, and returns the seconds since 1970;
    /// `nil` for another form.
    private static func basicTime(_ text: [UInt8]) -> Int64? {
        guard text.count == 16, text[8] == 0x54, text[15] == 0x5A else { return nil }
        return seconds(
            day: (text[0..<4], text[4..<6], text[6..<8]), time: (text[9..<11], text[11..<13], text[13..<15]))
    }

    /// Parses a time in a signed link of Azure: `2009-02-09`, `2009-02-09T08:49Z`, `2009-02-09T08:49:37.1234567Z`, and
    /// offsets such as `+01:00` for the `Z`. Returns the seconds since 1970; `nil` for another form.
    private static func extendedTime(_ text: [UInt8]) -> Int64? {
        guard text.count >= 10, text[4] == 0x2D, text[7] == 0x2D else { return nil }
        let day = (text[0..<4], text[5..<7], text[8..<10])
        let zero = Array("00".utf8)[...]
        guard text.count > 10 else { return seconds(day: day, time: (zero, zero, zero)) }
        guard text.count >= 17, text[10] == 0x54, text[13] == 0x3A else { return nil }
        var rest = text[16...]
        var second = zero
        if rest.first == 0x3A {
            guard rest.count >= 4 else { return nil }
            second = rest[17..<19]
            rest = rest[19...]
            if rest.first == 0x2E { rest = rest.dropFirst().drop(while: ASCII.isDigit) }
        }
        guard let time = seconds(day: day, time: (text[11..<13], text[14..<16], second)), let offset = offset(rest)
        else { return nil }
        return time - offset
    }

    /// Returns the offset of a time zone, `Z` or `+hh:mm`, from UTC in seconds; `nil` for another text.
    private static func offset(_ text: ArraySlice<UInt8>) -> Int64? {
        let bytes = Array(text)
        if bytes == [0x5A] { return 0 }
        guard bytes.count == 6, bytes[3] == 0x3A, let hours = ASCII.number(bytes[1..<3]), hours < 24,
            let minutes = ASCII.number(bytes[4..<6]), minutes < 60
        else { return nil }
        switch bytes[0] {
        case 0x2B, 0x20: return hours * 3600 + minutes * 60  // A `+` that was not escaped may have become a space.
        case 0x2D: return -(hours * 3600 + minutes * 60)
        default: return nil
        }
    }

    private typealias Fields = (ArraySlice<UInt8>, ArraySlice<UInt8>, ArraySlice<UInt8>)

    private static func seconds(day: Fields, time: Fields) -> Int64? {
        guard let year = ASCII.number(day.0), let month = ASCII.number(day.1), let number = ASCII.number(day.2),
            let date = CivilDate(year: year, month: month, day: number), let hour = ASCII.number(time.0), hour < 24,
            let minute = ASCII.number(time.1), minute < 60, let second = ASCII.number(time.2), second <= 60
        else { return nil }
        return date.dayNumber * 86_400 + hour * 3600 + minute * 60 + second
    }
}
