import CCurl
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

/// Lines of earlier heads are not parsed again. The cache must never change a result.
@Suite struct FieldCacheTests {
    /// Returns the final head that a collector makes of the lines, as text, or the kind of its failure.
    private func result(_ lines: [String], _ cache: FieldCache?) -> String {
        var collector = HeadCollector()
        for line in lines {
            let step = Array(line.utf8).withUnsafeBytes { collector.take($0, cache) }
            switch step {
            case .more: continue
            case .head(let head, let framing):
                let fields = head.fields.lines.map { "\($0.name)|\($0.value)" }
                let known = ["server", "ETAG", "X-A", "content-length"].map { head.fields.values(named: $0) }
                return "\(head.status) \(head.version) \(framing) \(fields) \(known)"
            case .refused(let failure): return "\(failure.kind)"
            }
        }
        return "more"
    }

    private static let lines = [
        "Server: nginx\r\n", "Server: nginx\n", "server: nginx\r\n", "Server:nginx \r\n", "Server: nginy\r\n",
        "X-A: \r\n",
        "ETag: \"1\"\r\n", "ETag: \"2\"\r\n", " folded\r\n", "\tfolded too\r\n", "X-A: \u{E9}\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 6\r\n", "X-A: \(String(repeating: "a", count: 89))\r\n", "Transfer-Encoding: chunked\r\n",
        "X-A: \(String(repeating: "a", count: 90))\r\n", "X-A: \(String(repeating: "b", count: 89))\r\n",
        "bad name: 1\r\n",
        "X-A: a\rb\r\n", "X-A: a\0b\r\n", "\r\n",
    ]

    @Test func headsAreTheSameWithIt() {
        var random = SystemRandomNumberGenerator()
        let cache = FieldCache()
        var complete = 0
        for _ in 0..<20_000 {
            var head = ["HTTP/1.1 \([200, 206, 206, 302][Int(random.next() % 4)]) OK\r\n"]
            if random.next() % 8 == 0 { head = ["HTTP/1.1 103 Early Hints\r\n", "Server: nginx\r\n", "\r\n"] + head }
            // Most lines are fields, and most of them are the first ones of the list.
            let count = Int(random.next() % 20)
            for _ in 0..<count {
                let last = random.next() % 4 == 0 ? Self.lines.count : 14
                head.append(Self.lines[Int(random.next() % UInt64(last))])
            }
            head.append("\r\n")
            let expected = result(head, nil)
            #expect(result(head, cache) == expected, "\(head)")
            if expected.hasPrefix("2") || expected.hasPrefix("3") { complete += 1 }
        }
        #expect(complete > 1000)
    }

    /// The cache is used at all: the same line is the same field, at its own index only.
    @Test func whatItKeeps() {
        let cache = FieldCache()
        let field = HTTPFields.Field(name: "ETag", value: "\"1\"")
        func find(_ line: String, at index: Int) -> HTTPFields.Field? {
            Array(line.utf8).withUnsafeBytes { cache.field($0, at: index, status: 200) }
        }
        Array("ETag: \"1\"\r\n".utf8).withUnsafeBytes { cache.keep(field, of: $0, at: 3, status: 200) }
        #expect(find("ETag: \"1\"\r\n", at: 3) == field)
        #expect(find("ETag: \"1\"\r\n", at: 2) == nil && find("ETag: \"2\"\r\n", at: 3) == nil)
        #expect(find("ETag: \"1\"\n", at: 3) == nil && find("", at: 3) == nil && find("ETag: \"1\"\r\n", at: 99) == nil)
        let long = "X: \(String(repeating: "a", count: 200))\r\n"
        Array(long.utf8).withUnsafeBytes { cache.keep(field, of: $0, at: 3, status: 200) }
        #expect(find(long, at: 3) == nil && find("ETag: \"1\"\r\n", at: 3) == nil)
    }

    /// Redirects and their targets alternate: neither replaces the other in the cache.
    @Test func redirectsAreKeptByThemselves() {
        let cache = FieldCache()
        let lines = [(302, "Content-Length: 145\r\n", "145"), (206, "Content-Length: 10240\r\n", "10240")]
        for (status, line, value) in lines {
            Array(line.utf8).withUnsafeBytes { line in
                cache.keep(HTTPFields.Field(name: "Content-Length", value: value), of: line, at: 3, status: status)
            }
        }
        for (status, line, value) in lines {
            Array(line.utf8).withUnsafeBytes { line in
                #expect(cache.field(line, at: 3, status: status)?.value == value)
                #expect(cache.field(line, at: 3, status: status == 302 ? 206 : 302) == nil)
            }
        }
    }

    /// The limits of a head also count cached lines.
    @Test func limits() {
        let cache = FieldCache()
        for _ in 0..<3 {
            let fields = (0..<5001).map { "X-\($0): 1\r\n" }
            #expect(result(["HTTP/1.1 200 OK\r\n"] + fields.prefix(5000) + ["\r\n"], cache).hasPrefix("200"))
            #expect(result(["HTTP/1.1 200 OK\r\n"] + fields + ["\r\n"], cache) == "headTooLarge")
            let early = ["HTTP/1.1 103 Early Hints\r\n"] + fields.prefix(3000) + ["\r\n"]
            #expect(result(early + early + ["HTTP/1.1 200 OK\r\n", "\r\n"], cache) == "headTooLarge")
        }
    }

    /// A repeated request begins its head from the start.
    @Test func aHeadThatBeginsAnew() {
        let cache = FieldCache()
        var collector = HeadCollector()
        var found: [String]?
        let begun = ["HTTP/1.1 200 OK\r\n", "X-A: 1\r\n", "X-B: 2\r\n"]
        for line in begun + ["again"] + begun + ["\r\n"] {
            if line == "again" {
                collector.restart()
                continue
            }
            let step = Array(line.utf8).withUnsafeBytes { collector.take($0, cache) }
            if case .head(let head, _) = step { found = head.fields.lines.map { "\($0.name)=\($0.value)" } }
        }
        #expect(found == ["X-A=1", "X-B=2"])
    }

    @Test(arguments: ["Set-Cookie", "set-cookie", "Location"]) func secretsAreNotKept(_ name: String) {
        let cache = FieldCache()
        Array("\(name): s\r\n".utf8).withUnsafeBytes { line in
            cache.keep(HTTPFields.Field(name: name, value: "s"), of: line, at: 0, status: 200)
            #expect(cache.field(line, at: 0, status: 200) == nil)
        }
    }

    /// libcurl adds its own `Accept: */*` if the list has no such field.
    @Test(arguments: [
        ([("Accept", "*/*")], ["Accept: */*"]), ([("Accept", "*/*"), ("A", "b")], ["A: b"]),
        ([("accept", "*/*"), ("A", "b")], ["A: b"]), ([("A", "b")], ["Accept:", "A: b"]),
        ([("Accept", "*/*"), ("Accept", "text/html")], ["Accept: */*", "Accept: text/html"]),
        ([("Accept", "*/*"), ("accept", "")], ["Accept: */*", "accept;"]),
        ([("Accept", "*/*"), ("Accept", "*/*"), ("A", "b")], ["Accept: */*", "Accept: */*", "A: b"]),
    ])
    func acceptIsSentAsItIs(_ fields: [(String, String)], _ expected: [String]) {
        let list = RequestFields.list(HTTPFields(fields))
        defer { curl_slist_free_all(list) }
        var (found, next): ([String], _) = ([], list)
        while let item = next?.pointee {
            found.append(String(cString: item.data))
            next = item.next
        }
        #expect(found == expected)
    }
}
