import Testing
import TowlineCore

@Suite("Malformed validators")
struct MalformedValidatorTests {
    private func facts(_ fields: [(String, String)]) -> Representation {
        ResponseFacts(ResponseHead(status: 200, fields: HTTPFields(fields)), nameOfURL: "f").representation
    }

    @Test("a tag without quotes is kept, and is not strong", arguments: ["0x8D81", "'a'", "w/\"a\"", "W/a"])
    func tags(_ text: String) throws {
        let tag = try #require(EntityTag(fieldValue: text))
        #expect(!tag.isWellFormed && !tag.isStrong && tag.fieldValue == text)
        #expect(tag.matchesWeakly(tag) && !tag.matchesStrongly(tag))
        #expect(facts([("ETag", text)]).validator == .weak)
    }

    @Test("a value that cannot be compared is ignored", arguments: ["", "\"\u{FFFD}", "a\tb", "W/", "\"\"x\u{7F}"])
    func noTags(_ text: String) { #expect(EntityTag(fieldValue: text) == nil) }

    @Test("a long value without the syntax of a tag is no tag")
    func longTag() { #expect(EntityTag(fieldValue: String(repeating: "a", count: 257)) == nil) }

    @Test("a list has the valid tags of a condition; a comma belongs to a tag inside quotes")
    func lists() {
        func read(_ text: String) -> [String] { EntityTag.list(text).map(\.fieldValue) }
        #expect(read("\"a\"") == ["\"a\""])
        #expect(read(" \"a,b\",, W/\"c\"\t,\"\" ,") == ["\"a,b\"", "W/\"c\"", "\"\""])
        #expect(read("a, 'b', w/\"c\", \"d\"") == ["\"d\""])
        for text in ["", " ", ",", "*", "a", "\"", "\"a", "W/"] {
            #expect(read(text) == [], "\(text)")
        }
    }

    @Test("quotes and W/ do not matter to the weak comparison")
    func weakly() throws {
        let tags = try ["\"a\"", "W/\"a\"", "a", "w/\"a\""].map { try #require(EntityTag(fieldValue: $0)) }
        for first in tags { for second in tags { #expect(first.matchesWeakly(second)) } }
        #expect(!tags[0].matchesWeakly(try #require(EntityTag(fieldValue: "A"))))
    }

    @Test("a strong date beside a malformed tag is the validator, and both must be unchanged")
    func dateBesideTag() {
        let date = [
            ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"), ("Date", "Tue, 02 Jan 2024 00:00:00 GMT"),
        ]
        let known = facts(date + [("ETag", "null")])
        #expect(known.strongValidator == "Mon, 01 Jan 2024 00:00:00 GMT")
        #expect(known.contradiction(with: facts(date + [("ETag", "null")])) == nil)
        #expect(known.contradiction(with: facts(date + [("ETag", "nil")])) != nil)
        let later = [("Last-Modified", "Mon, 01 Jan 2024 00:00:01 GMT"), ("ETag", "null")]
        #expect(known.contradiction(with: facts(later)) != nil)
    }

    @Test(
        "a malformed date is a weak validator",
        arguments: [
            "Mon, 01 Jan 2024 00:00:00 +0000", "Mon, 01 Jan 2024 00:00:00 -0000", "Mon, 1 Jan 2024 00:00:00 GMT",
            "01 Jan 2024 00:00:00 GMT", "Mon, 01 jan 2024 00:00:00 gmt", "Mon, 01 Jan 2024 00:00:00 UTC",
            "Mon, 01 Jan 2024 00:00:00", "Mon, 01 Jan 2024 01:30:00 +0130", "Mon, 01-Jan-2024 00:00:00 GMT",
            "2024-01-01T00:00:00Z", "2024-01-01 00:00:00", "2024-01-01T00:00:00.000+00:00",
        ])
    func dates(_ text: String) throws {
        let known = facts([("Last-Modified", text), ("Date", "Tue, 02 Jan 2024 00:00:00 GMT")])
        #expect(known.validator == .weak)
        #expect(known.lastModified == HTTPDate(fieldValue: "Mon, 01 Jan 2024 00:00:00 GMT"))
    }

    @Test(
        "a value that is not a date is ignored",
        arguments: [
            "", "0", "yesterday", "Mon, 01 Foo 2024 00:00:00 GMT", "Mon, 32 Jan 2024 00:00:00 GMT", "2024-01-01",
            "2024-13-01T00:00:00Z", "Mon, 01 Jan 2024 25:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 +00",
            "99999999999999999999 Jan 2024 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 CET",
        ])
    func noDates(_ text: String) { #expect(facts([("Last-Modified", text)]).validator == .none) }
}
