import Foundation
import Testing
import TowlineWire

/// The reader of pasted links, by value. `Tests/WebPageTests/link_cases.json` has more cases.
@Suite struct LinkReaderTests {
    /// A text, and what the reader finds in it.
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var text: String
        var links: [String]
        var odd: [String]?
        var schemes: [String]?
        var headers: [String]?

        var testDescription: String { String(text.prefix(60)) }

        init(
            _ text: String, _ links: [String], odd: [String] = [], schemes: [String] = [], headers: [String] = []
        ) {
            (self.text, self.links) = (text, links)
            (self.odd, self.schemes, self.headers) = (odd, schemes, headers)
        }

        static var shared: [Case] {
            let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../WebPageTests/link_cases.json")
            return (try? JSONDecoder().decode([Case].self, from: Data(contentsOf: file))) ?? []
        }
    }

    private static let a = "https://a.example/a.zip"
    private static let b = "https://a.example/b.zip"

    private static let others = [
        Case("Ｄownload：\(a)；\(b)！", [a, b]),
        Case("\(a)→\(b)•\(a)", [a, b]),
        Case("\(a)）、（\(b)", [a, b]),
        Case("ファイルは\(a)です。파일 \(b)입니다", [a, b]),
        Case(
            "name,url\n\"a \"\"big\"\" file\",\"https://a.example/x,y.zip\",\"7\"\n'b',\"\(b)?x=1;y=2\"",
            ["https://a.example/x,y.zip", b + "?x=1;y=2"], odd: ["name,url"]),
        Case(
            "[quote][url=\"\(a)\"]x[/url] [URL]https://a.example/b_(2).rar[/URL]", [a, "https://a.example/b_(2).rar"]),
        Case("[a]: \(a) \"A title\"\n[b]: <\(b)>\n***https://a.example/c.zip***", [a, b, "https://a.example/c.zip"]),
        Case("{\"files\":[\n  {\"url\":\"\(a)\"},\n]}", [a], odd: ["{\"files\":[", "]}"]),
        Case("<img src='\(a)'><source srcset=\"\(b) 1x, \(b)?2 2x\">", [a, b, b + "?2"]),
        Case("\(a)?x=&lt;1&gt;&nbsp;\(b)?&#x75;=&#0;&unknown;", [a + "?x=", b + "?u=&#0;&unknown"]),
        Case("https://user:pa,ss@a.example/a.zip", ["https://user:pa,ss@a.example/a.zip"]),
        Case("\u{FEFF}\(a)\u{3000}\(b)", [a, b]),
        Case("http://\nhttps://?x\nhttp://[::1/x", [], odd: ["http://", "https://?x", "http://[::1/x"]),
        // A link in the line hides no other scheme.
        Case("\(a),ftp://b.example/b.zip, or magnet:?xt=urn:btih:0", [a], schemes: ["ftp", "magnet"]),
        Case("ed2k://|file|x|1|/ and HTTP://A.EXAMPLE/F", ["HTTP://A.EXAMPLE/F"], schemes: ["ed2k"]),
        Case(
            "curl '\(a)' \\\n  -H 'accept: */*' \\\n  -H 'sec-ch-ua: \"x\"' \\\n  -H $'cookie: a=b\\u0021'\n\(b)",
            [a, b],
            headers: ["accept: */*", "cookie: a=b!"]),
        Case(
            "curl ^\"\(a)?x=1^&y=2^\" ^\r\n  -H ^\"Referer: https://b.example/^\"", [a + "?x=1&y=2"],
            headers: ["Referer: https://b.example/"]),
        Case("wget -q -c -U 'Agent 1' \"\(a)\" -P /tmp", [a], headers: ["User-Agent: Agent 1"]),
        Case("curl \"\(a) -x http://p.example", [a], headers: []),
        Case("curl -O a.example/a.zip", [], odd: ["curl -O a.example/a.zip"]),
    ]

    @Test func theSharedCasesAreRead() { #expect(Case.shared.count >= 47) }

    @Test(arguments: Case.shared + others) func linksAreFound(_ expected: Case) {
        let found = LinkReader.read(expected.text)
        #expect(found.links == expected.links)
        #expect(found.linesWithoutLink.map(\.text) == expected.odd ?? [])
        #expect(found.linesWithoutLinkCount == expected.odd?.count ?? 0)
        #expect(found.unsupportedSchemes == expected.schemes ?? [])
        #expect(found.headers.map { "\($0.name): \($0.value)" } == expected.headers ?? [])
    }

    /// The number of a line counts the lines of a command before it.
    @Test func linesHaveTheirNumbers() {
        let found = LinkReader.read("one\r\n\r\ncurl \(Self.a) \\\n -O \\\n\n -L\nfour\rfive\n# comment\nsix")
        #expect(found.linesWithoutLink.map(\.number) == [1, 7, 8, 10])
        #expect(found.linesWithoutLink.map(\.text) == ["one", "four", "five", "six"])
    }

    /// Texts in which a simple reader looks at the same characters again for each link or bracket: this takes hours.
    @Test(
        .timeLimit(.minutes(4)),
        arguments: [
            "[", "http://", ",", "(http://a.b)", "*http://a/*", "http://a/中", "curl \"'", "&#1", "\\\n", "a://b ",
        ]) func theTimeIsLinear(_ piece: String)
    {
        let text = String(repeating: piece, count: (1 << 18) / piece.utf8.count)
        #expect(LinkReader.read(text + "\n\(Self.a)\n").links.last == Self.a)
    }
}
