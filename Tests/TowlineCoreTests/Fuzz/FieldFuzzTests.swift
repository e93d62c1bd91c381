import Testing
import TowlineCore

@Suite("Fuzz: fields of a response")
struct FieldFuzzTests {
    @Test("Content-Range is never out of bounds")
    func contentRange() {
        let corpus = [
            "bytes 0-99/1234", "bytes 42-1233/*", "bytes */1234", "BYTES 5-5/6", "bytes 0-9223372036854775806/*",
        ]
        Fuzzer(name: "ContentRange", corpus: corpus, words: ["bytes ", "-", "/", "*", "bytes", "1"]).run { text, _ in
            guard let range = ContentRange(fieldValue: text) else { return nil }
            if ContentRange(fieldValue: range.fieldValue) != range { return "not read back" }
            if Self.withoutLeadingZeros(ASCII.lowercased(text)) != range.fieldValue {
                return "read as \(range.fieldValue)"
            }
            switch range {
            case .satisfied(let bytes, let length):
                return bytes.isEmpty || bytes.upperBound > length ?? .max ? "out of bounds" : nil
            case .unsatisfied(let length): return length < 0 ? "negative" : nil
            }
        }
    }

    @Test("Content-Length is the value of every member")
    func contentLength() {
        let corpus = ["5", "5, 5", "0", "9223372036854775807", "007,7", "5, 6"]
        Fuzzer(name: "ContentLength", corpus: corpus, words: [", ", "5", "\t,"]).run { text, generator in
            let lines = generator.below(2) == 0 ? [text] : [text, text]
            let result = ContentLength.parse(HTTPFields(lines.map { ("Content-Length", $0) }))
            guard case .length(let length) = result else { return result == .absent ? "absent" : nil }
            let members = text.split(separator: ",", omittingEmptySubsequences: false)
            let trimmed = members.map { $0.filter { $0 != " " && $0 != "\t" } }
            return length >= 0 && trimmed.allSatisfy { Int64($0) == length && !$0.hasPrefix("+") }
                ? nil : "read as \(length)"
        }
    }

    private static let dates = [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Tue, 29 Feb 2000 23:59:60 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 0000 00:00:00 GMT",
    ]
    private static let dateWords = ["Mon", "Feb", "29", "GMT", "9999", "0000", "-", ", ", "Sunday", "60", "24"]

    @Test("A parsed date is printed and parsed again")
    func date() {
        Fuzzer(name: "HTTPDate", corpus: Self.dates, words: Self.dateWords).run { text, generator in
            let now = HTTPDate(secondsSince1970: Int64(truncatingIfNeeded: generator.next()) >> generator.below(40))
            _ = now.fieldValue
            _ = HTTPDate(fieldValue: text, now: now)
            guard let date = HTTPDate(fieldValue: text) else { return nil }
            return HTTPDate(fieldValue: date.fieldValue) == date ? nil : "printed as \(date.fieldValue)"
        }
    }

    @Test("A delay is never negative and never beyond its limit")
    func retryAfter() {
        let corpus = Self.dates + ["0", "120", "1000000000000"]
        Fuzzer(name: "RetryAfter", corpus: corpus, words: Self.dateWords).run { text, generator in
            let now = Self.dates[generator.below(Self.dates.count)]
            guard let delay = RetryAfter.delay(HTTPFields([("Retry-After", text), ("Date", now)])) else { return nil }
            return delay < .zero || delay > RetryAfter.longestDelay ? "a delay of \(delay)" : nil
        }
    }

    @Test("An entity tag is kept byte for byte")
    func entityTag() {
        let corpus = ["\"abc\"", "W/\"abc\"", "\"\"", "W/\"\"", "\"é\""]
        Fuzzer(name: "EntityTag", corpus: corpus, words: ["W/", "w/", "\"", "\"\""]).run { text, _ in
            guard let tag = EntityTag(fieldValue: text) else { return nil }
            if !tag.fieldValue.utf8.elementsEqual(text.utf8) { return "kept as \(tag.fieldValue)" }
            if tag.fieldValue.utf8.contains(where: ASCII.isControl) { return "a control character" }
            return tag.matchesStrongly(tag) == tag.isStrong && tag.matchesWeakly(tag) ? nil : "does not match itself"
        }
    }

    @Test("A header that a user gives cannot begin another header")
    func userHeader() {
        let corpus = ["X-Test: value", "Authorization: Basic abc", "a:", "Range: bytes=0-", "a: b: c"]
        Fuzzer(name: "FieldValidation", corpus: corpus, words: [": ", ":", "Range", "\r\nHost: x"]).run { text, _ in
            guard let field = try? FieldValidation.parseUserHeader(text) else { return nil }
            if !FieldValidation.isValidName(field.name)
                || field.value.utf8.contains(where: { $0 != 9 && ASCII.isControl($0) })
            {
                return "not a field"
            }
            if ["range", "if-range", "content-length"].contains(ASCII.lowercased(field.name)) {
                return "not the user's"
            }
            return (try? FieldValidation.parseUserHeader("\(field.name): \(field.value)")) == field
                ? nil : "not read back"
        }
    }

    private static func withoutLeadingZeros(_ text: String) -> String {
        var kept: [UInt8] = []
        let bytes = Array(text.utf8)
        for (index, byte) in bytes.enumerated() {
            let beginsNumber = kept.last.map { !ASCII.isDigit($0) } ?? true
            let digitFollows = index + 1 < bytes.count && ASCII.isDigit(bytes[index + 1])
            if byte == 0x30, beginsNumber, digitFollows { continue }
            kept.append(byte)
        }
        return String(decoding: kept, as: UTF8.self)
    }
}

extension ContentRange {
    /// The field value as a server sends it.
    fileprivate var fieldValue: String {
        switch self {
        case .satisfied(let range, let length):
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length.map(String.init) ?? "*")"
        case .unsatisfied(let length): "bytes */\(length)"
        }
    }
}
