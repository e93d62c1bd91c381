import Testing

import TowlineCore

@Suite("Content-Disposition")
struct ContentDispositionTests {
    @Test(
        "File names",
        arguments: [
            // RFC 6266 §5.
            ("Attachment; filename=example.html", "example.html"),
            ("INLINE; FILENAME= \"an example.html\"", "an example.html"),
            ("attachment; filename*= UTF-8''%e2%82%ac%20rates", "€ rates"),
            ("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates", "€ rates"),
            // RFC 8187 §3.2.3.
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "£ rates"),
            ("attachment; filename*=UTF-8''%c2%a3%20and%20%e2%82%ac%20rates", "£ and € rates"),
            ("attachment; filename*=UTF-8''a; filename=b", "a"), ("attachment;filename=\"a;b.txt\"", "a;b.txt"),
            ("attachment; filename=\"a\\\"b\\\\c.txt\"", "a\"b\\c.txt"),
            ("attachment; filename=\"%41.txt\"", "%41.txt"),
            ("attachment; filename=%41.txt", "%41.txt"), ("attachment; filename=a b.zip ; x=y", "a b.zip"),
            ("filename=a", "a"), ("attachment; filename = a", "a"), ("attachment;;; filename=a;", "a"),
            ("attachment; x=\"; filename=z\"; filename=a", "a"), ("attachment; filename=\"é\"", "é"),
            ("attachment; filename=../../.ssh/authorized_keys", "../../.ssh/authorized_keys"),
            // Bytes that are not UTF-8 are read as ISO-8859-1.
            ("attachment; filename=\"r\u{10FFE9}s.pdf\"", "rés.pdf"),
            ("attachment; filename=é-\u{10FFE9}", "Ã©-é"),
            // Encoded words of mail (RFC 2047).
            ("attachment; filename=\"=?UTF-8?B?w7xiZXIucGRm?=\"", "über.pdf"),
            ("attachment; filename=\"=?iso-8859-1?Q?=FCber=5Funs.pdf?=\"", "über_uns.pdf"),
            ("attachment; filename=\"=?utf-8?q?a_b?= =?UTF-8*de?Q?=C3?= =?UTF-8?Q?=A4?= c.pdf\"", "a bä c.pdf"),
            ("attachment; filename=\"=?KOI8-R?B?wQ==?=.pdf\"", "=?KOI8-R?B?wQ==?=.pdf"),
            ("attachment; filename=\"=?UTF-8?B?wQ=?=.pdf\"", "=?UTF-8?B?wQ=?=.pdf"),
            ("attachment; filename=\"=?UTF-8?Q?=FF?=.pdf\"", "=?UTF-8?Q?=FF?=.pdf"),
            ("attachment; filename=\"=?UTF-8?Q?a\"", "=?UTF-8?Q?a"),
            // If `filename*` cannot be read, `filename` is used.
            ("attachment; filename*=UTF-8''%zz; filename=b", "b"),
            ("attachment; filename*=UTF-8''%ff; filename=b", "b"),
            ("attachment; filename*=KOI8-R''%c1; filename=b", "b"), ("attachment; filename*=b; filename=c", "c"),
            ("attachment", nil), ("", nil), ("attachment; filename=", nil), ("attachment; filename=\"\"", nil),
            ("attachment; filename=\"open", nil), ("attachment; filename=\"open\\", nil),
            ("attachment; filename=a; filename=b", nil), ("attachment; filename*=UTF-8''a; filename*=UTF-8''b", nil),
            ("attachment; xfilename=a", nil), ("attachment; filename", nil), ("attachment; filename*0=a", nil),
        ] as [(String, String?)])
    func fileName(value: String, expected: String?) {
        #expect(ContentDisposition.fileName(HTTPFields([("content-disposition", value)])) == expected)
    }

    @Test("Lines that contradict each other count as none")
    func contradiction() {
        let name = "Content-Disposition"
        #expect(ContentDisposition.fileName(HTTPFields([(name, "a; filename=x"), (name, "a; filename=y")])) == nil)
        #expect(ContentDisposition.fileName(HTTPFields([(name, "a; filename=x"), (name, "a; filename=x")])) == "x")
        #expect(ContentDisposition.fileName(HTTPFields()) == nil)
    }
}

@Suite("Headers a user gives")
struct FieldValidationTests {
    @Test(
        "Accepted",
        arguments: [
            ("X-Test: value", "X-Test", "value"), ("a:b", "a", "b"), ("a:  b\t", "a", "b"), ("a: b: c", "a", "b: c"),
            ("a:", "a", ""), ("Authorization: Bearer x.y", "Authorization", "Bearer x.y"), ("a: b\tc", "a", "b\tc"),
            ("a: é", "a", "é"), ("!#$%&'*+-.^_`|~09: x", "!#$%&'*+-.^_`|~09", "x"),
        ])
    func accepted(text: String, name: String, value: String) throws {
        #expect(try FieldValidation.parseUserHeader(text) == HTTPFields.Field(name: name, value: value))
    }

    @Test(
        "Refused, without showing the value",
        arguments: [
            "", "canary", ":canary", " : canary", "a b: canary", "a : canary", " a: canary", "a\u{0}: canary",
            "é: canary",
            "a: canary\r\nX: y", "a: canary\n", "a: canary\r", "a: can\u{0}canary", "a: canary\u{1B}",
            "a: \u{7F}canary",
            "a\r\n: canary", "a(b): canary", ":authority: canary", "\u{1B}[2J: canary",
            "Range: canary", "if-range: canary", "If-None-Match: canary", "CONTENT-LENGTH: canary",
            "Transfer-Encoding: canary", "Connection: canary", "Expect: canary",
        ])
    func refused(text: String) {
        let error = #expect(throws: TowlineError.self) { try FieldValidation.parseUserHeader(text) }
        #expect(error?.code == .unusableHeader)
        #expect(error?.message.contains("canary") == false)
        #expect(error?.message.utf8.contains { ASCII.isControl($0) } == false)
    }
}

@Suite("Fields by name")
struct FieldNameTests {
    private let names = ["Content-Length", "Content-Range", "ETag", "Last-Modified", "X", "", "\u{E9}t\u{E9}"]

    @Test("A name is found however it is written, and no other is")
    func anyCase() {
        for name in names {
            let fields = HTTPFields([(name, "1")])
            for written in [name, name.uppercased(), name.lowercased()] where written.utf8.allSatisfy({ $0 < 0x80 }) {
                #expect(fields.has(written) && fields.value(named: written) == "1", "\(written)")
                #expect(fields.values(named: written) == ["1"])
            }
            for other in names where other != name {
                #expect(!fields.has(other) && fields.value(named: other) == nil && fields.values(named: other) == [])
            }
        }
    }

    @Test("Names of the same length and the same beginning are distinguished")
    func alike() {
        let fields = HTTPFields([("X-Aab", "1"), ("x-aac", "2"), ("X-AAB", "3")])
        #expect(fields.values(named: "x-aab") == ["1", "3"])
        #expect(fields.value(named: "x-aab") == nil, "two lines that differ")
        #expect(fields.value(named: "X-Aac") == "2")
        #expect(!fields.has("X-Aad") && fields.value(named: "X-Aad") == nil)
    }

    @Test("A line that is continued keeps its name")
    func lastValue() {
        var fields = HTTPFields()
        fields.replaceLastValue(by: "0")
        #expect(fields == HTTPFields())
        fields.append(name: "A", value: "1")
        fields.append(name: "B", value: "2")
        fields.replaceLastValue(by: "2 3")
        #expect(fields == HTTPFields([("A", "1"), ("B", "2 3")]))
        #expect(fields.value(named: "b") == "2 3" && fields.value(named: "a") == "1")
    }

    @Test("Fields are compared by their bytes on the wire, not by Swift's text equality")
    func sameBytes() {
        let composed = HTTPFields([("If-Range", "\"\u{E9}\"")])
        let decomposed = HTTPFields([("If-Range", "\"e\u{301}\"")])
        #expect(composed == decomposed, "equal as text, which is the trap")
        #expect(!composed.isSameOnWire(as: decomposed))
        #expect(composed.isSameOnWire(as: composed) && HTTPFields().isSameOnWire(as: HTTPFields()))
        #expect(!composed.isSameOnWire(as: HTTPFields()))
        #expect(!composed.isSameOnWire(as: HTTPFields([("if-range", "\"\u{E9}\"")])))
        #expect(!composed.isSameOnWire(as: HTTPFields([("If-Range", "\"\u{E9}\""), ("A", "1")])))
    }
}
