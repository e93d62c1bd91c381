import Testing
import TowlineCore

@Suite("Verdicts on responses")
struct ResponseEvaluatorTests {
    private static let length: Int64 = 1000
    private static let known = Representation(completeLength: length, entityTag: EntityTag(fieldValue: "\"a\""))

    private func verdict(
        _ asked: ResponseQuestion.Asked, _ rung: ResponseQuestion.Rung, known: Representation? = Self.known,
        holdsAll: Bool = false, worked: Bool = false, _ status: Int, _ fields: [(String, String)] = []
    ) throws -> ResponseVerdict {
        let question = ResponseQuestion(
            asked: asked, rung: rung, known: rung == .nothingToJoin ? nil : known, holdsAllBeforeAsked: holdsAll,
            workedBefore: worked, source: try HTTPURL(parsing: "https://example.org/file.iso"))
        return ResponseEvaluator.verdict(
            on: ResponseHead(status: status, fields: HTTPFields(fields)), to: question)
    }

    /// Returns a word for a verdict, so that a row of a table can name it.
    private func word(_ verdict: ResponseVerdict) -> String {
        switch verdict {
        case .partial: "partial"
        case .whole: "whole"
        case .empty: "empty"
        case .complete: "complete"
        case .askWithoutRange: "without range"
        case .changed(_, _, let isWhole): isWhole ? "changed, whole" : "changed"
        case .rangeIgnored: "ignored"
        case .rangeRefused: "refused"
        case .conditionRefused: "without If-Range"
        case .notModified: "not modified"
        case .weakened: "weakened"
        case .redirect: "redirect"
        case .linkExpired: "expired"
        case .transient(_, _, let overloaded, _): overloaded ? "overloaded" : "transient"
        case .webPage: "page"
        case .permanent(let error): "permanent \(error.code)"
        }
    }

    private static let tag = ("ETag", "\"a\"")
    private static func range(_ text: String) -> (String, String) { ("Content-Range", text) }

    @Test(
        "a first request",
        arguments: [
            (206, [range("bytes 0-999/1000"), tag], "partial"), (206, [range("bytes 0-99/1000")], "partial"),
            (206, [range("bytes 0-999/*")], "partial"), (206, [range("bytes 1-999/1000")], "refused"),
            (206, [], "refused"), (206, [range("bytes 0-999/1000"), ("Content-Length", "7")], "refused"),
            (200, [("Content-Length", "1000")], "whole"), (200, [], "whole"),
            (400, [], "without range"), (501, [], "without range"),
            (404, [], "permanent notFound"), (401, [], "permanent refusedByServer"),
            (410, [], "permanent refusedByServer"), (503, [], "overloaded"), (429, [], "overloaded"),
            (500, [], "transient"), (408, [], "transient"), (425, [], "transient"), (522, [], "transient"),
            (204, [], "permanent invalidResponse"), (205, [], "permanent invalidResponse"),
            (201, [], "permanent invalidResponse"), (202, [], "permanent invalidResponse"),
            (304, [], "permanent invalidResponse"), (999, [], "permanent invalidResponse"),
            (302, [("Location", "/x")], "redirect"), (302, [], "permanent redirectRefused"),
            (200, [("Content-Length", "5, 6")], "permanent invalidResponse"),
            (200, [("Content-Length", "-1")], "permanent invalidResponse"),
            (200, [("Content-Length", "18446744073709551616")], "permanent invalidResponse"),
            (200, [("Content-Length", "5"), ("Transfer-Encoding", "chunked")], "whole"),
            (200, [("Content-Length", "5, 6"), ("Transfer-Encoding", "chunked")], "whole"),
            (206, [range("bytes 0-99/1000"), ("Content-Length", "7"), ("Transfer-Encoding", "chunked")], "partial"),
            (200, [("Content-Length", "5, 5")], "whole"),
            (200, [range("bytes 0-999/1000"), ("Content-Length", "1000")], "partial"),
            (200, [range("bytes 0-99/1000"), ("Content-Length", "100")], "partial"),
            (200, [range("bytes 0-999/1000")], "partial"), (200, [range("bytes 0-999/*")], "partial"),
            (200, [range("bytes 100-199/1000"), ("Content-Length", "100")], "refused"),
            (200, [range("bytes 0-999/1000"), ("Content-Length", "500")], "without range"),
            (200, [range("bytes=0-999/1000"), ("Content-Length", "1000")], "without range"),
            (200, [range("bytes 0-999/1000"), ("Content-Encoding", "gzip")], "without range"),
        ] as [(Int, [(String, String)], String)])
    func first(_ status: Int, _ fields: [(String, String)], _ expected: String) throws {
        #expect(word(try verdict(.from(0), .nothingToJoin, status, fields)) == expected)
    }

    @Test(
        "a further range with If-Range",
        arguments: [
            (206, [range("bytes 100-199/1000"), tag], "partial"), (206, [range("bytes 100-149/1000"), tag], "partial"),
            (206, [range("bytes 100-199/*"), tag], "partial"), (206, [range("bytes 100-199/1000")], "refused"),
            (206, [range("bytes 99-199/1000"), tag], "refused"), (206, [range("bytes 100-200/1000"), tag], "refused"),
            (206, [range("bytes 100-199/1001"), tag], "changed"),
            (206, [range("bytes 100-199/1000"), ("ETag", "\"b\"")], "changed"),
            (206, [range("bytes 100-199/1000"), ("ETag", "W/\"a\"")], "weakened"),
            (206, [range("bytes 100-199/1000"), ("ETag", "a")], "weakened"),
            (206, [range("bytes 100-199/*"), ("ETag", "W/\"a\"")], "refused"),
            (206, [range("bytes 100-199/1001"), ("ETag", "W/\"a\"")], "changed"),
            (200, [("Content-Length", "1000"), ("ETag", "W/\"a\"")], "ignored"),
            (200, [("ETag", "W/\"a\"")], "changed, whole"),
            (206, [range("items 100-199/1000"), tag], "refused"), (206, [range("bytes 199-100/1000"), tag], "refused"),
            (206, [range("bytes 100-99999999999999999999/1000"), tag], "refused"),
            (206, [tag], "refused"), (206, [("Content-Type", "multipart/byteranges; boundary=x"), tag], "refused"),
            (206, [range("bytes 100-199/1000"), tag, ("Content-Encoding", "gzip")], "refused"),
            (206, [range("bytes 100-199/1000"), tag, ("Content-Encoding", "identity")], "partial"),
            (206, [range("bytes 100-199/1000"), tag, ("Transfer-Encoding", "chunked")], "partial"),
            (206, [range("bytes 100-199/1000"), tag, ("Content-Length", "101")], "refused"),
            (200, [("Content-Length", "1000"), tag], "ignored"),
            (200, [("Content-Length", "1000"), ("ETag", "\"b\"")], "changed, whole"),
            (200, [("Content-Length", "999"), tag], "changed, whole"),
            (200, [("Content-Length", "1000")], "changed, whole"),
            (200, [range("bytes 100-199/1000"), tag, ("Content-Length", "100")], "partial"),
            (200, [range("bytes 100-199/1000"), tag], "partial"), (200, [range("bytes 100-199/1000")], "refused"),
            (200, [range("bytes 100-199/1001"), tag], "changed"), (200, [range("bytes 0-99/1000"), tag], "refused"),
            (200, [range("bytes 100-199/1000"), ("ETag", "\"b\"")], "changed"),
            (200, [range("bytes 100-199/1000"), tag, ("Content-Length", "1000")], "refused"),
            (200, [range("bytes 0-999/1000"), tag, ("Content-Length", "1000")], "ignored"),
            (200, [range("bytes 0-99/100"), tag, ("Content-Length", "100")], "refused"),
            (200, [("Content-Length", "100"), tag], "refused"),
            (200, [("Content-Type", "text/html")], "page"), (412, [], "without range"),
        ] as [(Int, [(String, String)], String)])
    func further(_ status: Int, _ fields: [(String, String)], _ expected: String) throws {
        let asked = ResponseQuestion.Asked.range(ByteRange(100, 200))
        #expect(word(try verdict(asked, .ifRange, status, fields)) == expected)
    }

    @Test("weaker rungs demand that validator and length are repeated")
    func weaker() throws {
        let asked = ResponseQuestion.Asked.range(ByteRange(100, 200))
        let weak = Representation(completeLength: 1000, entityTag: EntityTag(fieldValue: "W/\"a\""))
        let weakTag = ("ETag", "W/\"a\"")
        let good = Self.range("bytes 100-199/1000")
        let open = Self.range("bytes 100-199/*")
        #expect(word(try verdict(asked, .repeatedValidator, 206, [good, Self.tag])) == "partial")
        #expect(word(try verdict(asked, .repeatedValidator, 206, [open, Self.tag])) == "refused")
        #expect(word(try verdict(asked, .repeatedValidator, 206, [good])) == "refused")
        #expect(word(try verdict(asked, .weakWithOverlap, known: weak, 206, [good, weakTag])) == "partial")
        #expect(word(try verdict(asked, .weakWithOverlap, known: weak, 206, [open, weakTag])) == "refused")
        #expect(word(try verdict(asked, .weakWithOverlap, known: weak, 206, [good])) == "refused")
        let bare = Representation(completeLength: 1000)
        #expect(word(try verdict(asked, .unsafe, known: bare, 206, [good])) == "partial")
        #expect(word(try verdict(asked, .unsafe, known: bare, 206, [open])) == "refused")
        #expect(word(try verdict(asked, .checksum, known: bare, 206, [good])) == "partial")
    }

    @Test("status 416 (range not satisfiable): the end of the file, another file, or a refusal of ranges")
    func unsatisfiable() throws {
        let open = Representation(entityTag: EntityTag(fieldValue: "\"a\""))
        let end = ResponseQuestion.Asked.from(1000)
        let part = ResponseQuestion.Asked.range(ByteRange(100, 200))
        func judge(_ asked: ResponseQuestion.Asked, _ known: Representation?, holdsAll: Bool = false, _ range: String?)
            throws -> String
        {
            let fields = range.map { [Self.range($0)] } ?? []
            return word(
                try verdict(
                    asked, known == nil ? .nothingToJoin : .ifRange, known: known, holdsAll: holdsAll, 416, fields))
        }
        #expect(try judge(end, open, holdsAll: true, "bytes */1000") == "complete")
        #expect(try judge(end, open, holdsAll: false, "bytes */1000") == "changed")
        #expect(try judge(part, Self.known, "bytes */1000") == "refused")
        #expect(try judge(part, Self.known, "bytes */50") == "changed")
        #expect(try judge(part, Self.known, nil) == "without range")
        let first = ResponseQuestion.Asked.from(0)
        #expect(try judge(first, nil, "bytes */0") == "empty")
        #expect(try judge(first, nil, "bytes */7") == "without range")
        #expect(try judge(first, nil, nil) == "without range")
        #expect(try judge(.whole, nil, "bytes */9") == "permanent invalidResponse")
    }

    @Test(
        "without Range a part is accepted only from the first byte",
        arguments: [
            ([range("bytes 0-9/10")], "partial"), ([range("bytes 0-8/10")], "partial"),
            ([range("bytes 0-9/*")], "partial"), ([range("bytes 1-9/10")], "permanent invalidResponse"),
            ([], "permanent invalidResponse"), ([range("bytes 0-9/5")], "permanent invalidResponse"),
            ([range("bytes 0-9/10"), ("Content-Length", "7")], "refused"),
        ] as [([(String, String)], String)])
    func unaskedPart(_ fields: [(String, String)], _ expected: String) throws {
        #expect(word(try verdict(.whole, .nothingToJoin, 206, fields)) == expected)
    }

    @Test(
        "without Range no part is accepted that begins later", arguments: [[range("bytes 1-9/10")]])
    func unasked(_ fields: [(String, String)]) throws {
        #expect(word(try verdict(.whole, .nothingToJoin, 206, fields)) == "permanent invalidResponse")
    }

    @Test(
        "without Range a 200 is the whole file, unless it names a part of it",
        arguments: [
            ([range("bytes 0-9/10"), ("Content-Length", "10")], "whole"), ([range("bytes 0-9/10")], "whole"),
            ([range("bytes 0-9/11"), ("Content-Length", "11")], "whole"), ([range("x"), tag], "whole"),
            ([range("bytes 0-8/10"), ("Content-Length", "9")], "partial"),
            ([range("bytes 1-9/10")], "permanent invalidResponse"),
        ] as [([(String, String)], String)])
    func plain(_ fields: [(String, String)], _ expected: String) throws {
        #expect(word(try verdict(.whole, .nothingToJoin, 200, fields)) == expected)
    }

    @Test("a 203 is read as a 200")
    func transformed() throws {
        guard case .whole(let facts) = try verdict(.from(0), .nothingToJoin, 203, [("Content-Length", "1000")]) else {
            Issue.record("a 203 is not the file")
            return
        }
        #expect(facts.representation.completeLength == 1000)
        let asked = ResponseQuestion.Asked.range(ByteRange(100, 200))
        let fields = [Self.range("bytes 100-199/1000"), Self.tag, ("Content-Length", "100")]
        #expect(word(try verdict(asked, .ifRange, 203, fields)) == "partial")
        #expect(word(try verdict(asked, .ifRange, 203, [("Content-Length", "1000"), Self.tag])) == "ignored")
    }

    @Test(
        "a 304 after If-Range is asked again without it",
        arguments: [
            (.ifRange, "without If-Range"), (.repeatedValidator, "permanent invalidResponse"),
            (.nothingToJoin, "permanent invalidResponse"),
        ] as [(ResponseQuestion.Rung, String)])
    func notModified(_ rung: ResponseQuestion.Rung, _ expected: String) throws {
        #expect(word(try verdict(.range(ByteRange(100, 200)), rung, 304)) == expected)
    }

    @Test(
        "statuses that mean later",
        arguments: [
            (509, [], "overloaded"), (529, [], "overloaded"), (507, [], "transient"), (511, [], "transient"),
            (520, [], "transient"), (530, [], "transient"), (539, [], "transient"), (598, [], "transient"),
            (599, [], "transient"), (540, [], "permanent refusedByServer"), (597, [], "permanent refusedByServer"),
            (202, [("Retry-After", "5")], "transient"), (403, [("Retry-After", "5")], "transient"),
            (404, [("Retry-After", "5")], "permanent notFound"),
            (204, [("Retry-After", "5")], "permanent invalidResponse"),
            (202, [("Retry-After", "soon")], "permanent invalidResponse"),
        ] as [(Int, [(String, String)], String)])
    func later(_ status: Int, _ fields: [(String, String)], _ expected: String) throws {
        #expect(word(try verdict(.from(0), .nothingToJoin, status, fields)) == expected)
    }

    @Test("the statuses of --retry-on are transient, and no others", arguments: [202, 401, 404, 418, 451, 505])
    func retryStatuses(_ status: Int) throws {
        var question = ResponseQuestion(
            asked: .from(0), rung: .nothingToJoin, known: nil, source: try HTTPURL(parsing: "https://example.org/a"))
        let head = ResponseHead(status: status)
        #expect(word(ResponseEvaluator.verdict(on: head, to: question)).hasPrefix("permanent"))
        question.retryStatuses = [status]
        #expect(word(ResponseEvaluator.verdict(on: head, to: question)) == "transient")
    }

    @Test(
        "several Location fields that differ are an error that says so",
        arguments: [300, 301, 302, 303, 307, 308])
    func locations(_ status: Int) throws {
        let fields = [("Location", "/a"), ("location", "/b")]
        guard case .permanent(let error) = try verdict(.from(0), .nothingToJoin, status, fields) else {
            Issue.record("\(status) is followed")
            return
        }
        #expect(error.code == .redirectRefused && error.message.contains("several Location headers"))
        let same = [("Location", "/a"), ("Location", "/a")]
        #expect(word(try verdict(.from(0), .nothingToJoin, status, same)) == "redirect")
    }

    @Test(
        "a refusal after it worked is an expired link",
        arguments: [400, 401, 402, 403, 404, 405, 410, 419, 440, 451, 498])
    func expired(_ status: Int) throws {
        let asked = ResponseQuestion.Asked.range(ByteRange(100, 200))
        #expect(word(try verdict(asked, .ifRange, worked: true, status)) == "expired")
        #expect(word(try verdict(asked, .ifRange, worked: false, status)).hasPrefix("permanent"))
    }

    @Test(
        "a status about the proxy, the time, the condition or the range is no expired link",
        arguments: [407, 408, 412, 416, 425, 429, 500, 503])
    func notExpired(_ status: Int) throws {
        let asked = ResponseQuestion.Asked.range(ByteRange(100, 200))
        #expect(word(try verdict(asked, .ifRange, worked: true, status)) != "expired")
    }
}

@Suite("Proof that two responses belong to the same representation")
struct RepresentationTests {
    private func dated(_ modified: Int64, _ date: Int64?) -> Representation {
        Representation(
            lastModified: HTTPDate(secondsSince1970: modified), date: date.map { HTTPDate(secondsSince1970: $0) })
    }

    @Test("a date is strong once the origin's clock has moved on by a second")
    func dates() {
        #expect(dated(1000, 1000).validator == .weak)
        #expect(dated(1000, nil).validator == .weak)
        #expect(dated(1000, 500).validator == .weak)
        #expect(dated(1000, 1001).validator == .strong("Thu, 01 Jan 1970 00:16:40 GMT"))
    }

    @Test("a tag outranks a date; a weak one is never strong")
    func tags() {
        var both = dated(1000, 2000)
        both.entityTag = EntityTag(fieldValue: "W/\"x\"")
        #expect(both.validator == .weak)
        both.entityTag = EntityTag(fieldValue: "\"x\"")
        #expect(both.validator == .strong("\"x\""))
    }

    @Test("contradictions are found in length, tag and date")
    func contradictions() {
        let tagged = Representation(completeLength: 5, entityTag: EntityTag(fieldValue: "\"x\""))
        #expect(tagged.contradiction(with: Representation(completeLength: 6)) != nil)
        #expect(tagged.contradiction(with: Representation(entityTag: EntityTag(fieldValue: "\"y\""))) != nil)
        #expect(tagged.contradiction(with: Representation(completeLength: 5)) == nil)
        #expect(dated(1000, 2000).contradiction(with: dated(1001, 2000)) != nil)
    }
}
