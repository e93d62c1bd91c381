import Testing

import TowlineCore

@Suite("Content-Range")
struct ContentRangeTests {
    @Test(
        "Satisfied ranges",
        arguments: [
            ("bytes 42-1233/1234", ByteRange(42, 1234), 1234), ("bytes 42-1233/*", ByteRange(42, 1234), nil),
            ("bytes 0-0/1", ByteRange(0, 1), 1), ("BYTES 0-499/1234", ByteRange(0, 500), 1234),
            ("bytes 0-9223372036854775806/9223372036854775807", ByteRange(0, .max), .max),
            ("bytes 4294967296-4294967297/4294967300", ByteRange(4_294_967_296, 4_294_967_298), 4_294_967_300),
        ] as [(String, ByteRange, Int64?)])
    func satisfied(text: String, range: ByteRange, length: Int64?) {
        #expect(ContentRange(fieldValue: text) == .satisfied(range, completeLength: length))
    }

    @Test("Unsatisfied ranges", arguments: [("bytes */1234", 1234), ("bytes */0", 0)] as [(String, Int64)])
    func unsatisfied(text: String, length: Int64) {
        #expect(ContentRange(fieldValue: text) == .unsatisfied(completeLength: length))
    }

    @Test(
        "Refused",
        arguments: [
            "", "bytes", "bytes ", "0-1/2", "bytes 0-1", "bytes 0-1/", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-1/1",
            "bytes 0-0/0", "bytes */*", "bytes */", "bytes *", "bytes -1/5", "bytes -1-1/5", "bytes 1-/5",
            "bytes +0-1/5",
            "bytes 0-1/-5", "bytes 0-1/2x", "bytes 0-1/2 ", "bytes  0-1/2", "bytes=0-1/2", "bytes: 0-1/2",
            "bytes 0 - 1/2",
            "items 0-1/2", "byte 0-1/2", "bytesx 0-1/2", "bytes 0-1/2, bytes 3-4/5", "bytes 0x0-0x1/2", "bytes ٠-١/٢",
            "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775807/9223372036854775808",
            "bytes 0-1/9223372036854775808", "bytes 18446744073709551616-18446744073709551617/*",
            "bytes 99999999999999999999999999999999-0/1", "bytes */18446744073709551616",
        ])
    func refused(text: String) {
        #expect(ContentRange(fieldValue: text) == nil)
    }
}

@Suite("Content-Length")
struct ContentLengthTests {
    @Test(
        "All lines are one list",
        arguments: [
            ([], .absent), (["0"], .length(0)), (["5"], .length(5)), (["5, 5"], .length(5)), (["5", "5"], .length(5)),
            (["5 ,\t5"], .length(5)), (["9223372036854775807"], .length(.max)), (["007"], .length(7)),
            (["5, 6"], .invalid), (["5", "6"], .invalid), (["-1"], .invalid), (["+5"], .invalid), ([""], .invalid),
            (["9223372036854775808"], .invalid), (["18446744073709551616"], .invalid), (["5,"], .invalid),
            ([",5"], .invalid), (["5", ""], .invalid), (["5 5"], .invalid), (["0x5"], .invalid), (["5.0"], .invalid),
            (["5;"], .invalid), (["٥"], .invalid),
        ] as [([String], ContentLength.Result)])
    func parse(lines: [String], expected: ContentLength.Result) {
        #expect(ContentLength.parse(HTTPFields(lines.map { ("content-LENGTH", $0) })) == expected)
    }
}

@Suite("Dates")
struct HTTPDateTests {
    @Test(
        "All three forms",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1), ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600), ("Thu Feb 29 12:00:00 2024", 1_709_208_000),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            ("Fri, 30 Jun 2012 23:59:60 GMT", 1_341_100_800), ("Tue Nov 16 08:49:37 1994", 784_975_777),
            ("Wednesday, 01-Jan-70 00:00:00 GMT", 0), ("Tuesday, 01-Jan-69 00:00:00 GMT", 3_124_224_000),
        ] as [(String, Int64)])
    func parse(text: String, seconds: Int64) {
        #expect(HTTPDate(fieldValue: text)?.secondsSince1970 == seconds)
    }

    @Test(
        "Refused",
        arguments: [
            "", "0", "784111777", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 gmt",
            "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
            "Thu, 29 Feb 2023 00:00:00 GMT", "Thu, 29 Feb 1900 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:00:61 GMT", "Sun, 06 Nov 19945 08:49:37 GMT",
            "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sunday Nov  6 08:49:37 1994",
            "Sun Nov 6 08:49:37 1994", "Sun Nov 06 08:49:37 94", "2026-01-01T00:00:00Z",
            "Fri, 31 Dec 9999 23:59:60 GMT",
            "Sun, 06 Nov 1994 08:49:37 +0000",
        ])
    func refused(text: String) {
        #expect(HTTPDate(fieldValue: text) == nil)
    }

    @Test(
        "A two-digit year is the latest that is not more than 50 years ahead",
        arguments: [
            ("Sun, 06 Nov 1994 00:00:00 GMT", "94", "1994"), ("Thu, 01 Jan 2026 00:00:00 GMT", "94", "1994"),
            ("Thu, 01 Jan 2026 00:00:00 GMT", "75", "2075"), ("Thu, 01 Jan 2026 00:00:00 GMT", "77", "1977"),
            ("Fri, 01 Jan 1999 00:00:00 GMT", "05", "2005"), ("Sat, 01 Jan 2050 00:00:00 GMT", "99", "2099"),
        ])
    func shortYear(now: String, digits: String, year: String) throws {
        let now = try #require(HTTPDate(fieldValue: now))
        let date = HTTPDate(fieldValue: "Sunday, 06-Nov-\(digits) 00:00:00 GMT", now: now)
        #expect(date?.fieldValue.contains(" Nov \(year) ") == true)
    }

    @Test("Printing is IMF-fixdate, and never traps")
    func printing() {
        #expect(HTTPDate(secondsSince1970: 784_111_777).fieldValue == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate(secondsSince1970: -1).fieldValue == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate(secondsSince1970: .max).fieldValue == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate(secondsSince1970: .min).fieldValue == "Sat, 01 Jan 0000 00:00:00 GMT")
    }

    @Test("Every day of 800 years is printed and read back, the names of the days in order")
    func calendar() {
        let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        for day in Int64(0)..<292_194 {
            let date = HTTPDate(secondsSince1970: day * 86_400 + day % 86_400)
            let text = date.fieldValue
            guard HTTPDate(fieldValue: text) == date, text.hasPrefix(names[Int(day % 7)]) else {
                Issue.record("day \(day) is printed as \(text)")
                return
            }
        }
    }
}

@Suite("Retry-After")
struct RetryAfterTests {
    private static let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")

    @Test(
        "Seconds and dates",
        arguments: [
            ("0", .zero), ("120", .seconds(120)), ("1000000000000", .seconds(1_000_000_000)),
            ("99999999999999999999999999", .seconds(1_000_000_000)), ("Sun, 06 Nov 1994 08:50:07 GMT", .seconds(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", .seconds(30)), ("Sun Nov  6 08:50:07 1994", .seconds(30)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", .zero), ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(1_000_000_000)),
            ("", nil), ("soon", nil), ("-1", nil), ("+1", nil), ("1.5", nil), ("1 s", nil), ("Sun, 06 Nov", nil),
        ] as [(String, Duration?)])
    func delay(value: String, expected: Duration?) {
        #expect(RetryAfter.delay(HTTPFields([Self.date, ("Retry-After", value)])) == expected)
    }

    @Test("A date needs the response's own date; seconds do not")
    func withoutDate() {
        #expect(RetryAfter.delay(HTTPFields([("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT")])) == nil)
        #expect(
            RetryAfter.delay(HTTPFields([("Date", "now"), ("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT")])) == nil)
        #expect(RetryAfter.delay(HTTPFields([("retry-after", "7")])) == .seconds(7))
        #expect(RetryAfter.delay(HTTPFields([Self.date])) == nil)
    }

    @Test("Lines that contradict each other count as none")
    func contradiction() {
        #expect(RetryAfter.delay(HTTPFields([("Retry-After", "7"), ("Retry-After", "8")])) == nil)
        #expect(RetryAfter.delay(HTTPFields([("Retry-After", "7"), ("Retry-After", "7")])) == .seconds(7))
    }
}

@Suite("Entity tags, bytes")
struct EntityTagByteTests {
    @Test("Tags that only look the same differ")
    func canonicalEquivalence() throws {
        let composed = try #require(EntityTag(fieldValue: "\"\u{E9}\""))
        let decomposed = try #require(EntityTag(fieldValue: "\"e\u{301}\""))
        #expect(composed != decomposed)
        #expect(!composed.matchesStrongly(decomposed))
        #expect(!composed.matchesWeakly(decomposed))
    }

    @Test("A tag with lost bytes is not a tag")
    func replacementCharacter() {
        #expect(EntityTag(fieldValue: "\"\u{FFFD}\"") == nil)
    }
}
