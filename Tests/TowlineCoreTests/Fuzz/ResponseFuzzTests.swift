import Testing
import TowlineCore

/// Judges complete response heads against complete questions. Each property fails without the check that it names:
/// remove `misplaced`, `missingProof`, `contradiction(with:)` or `brokenFraming` from `ResponseEvaluator` to see it.
@Suite("Fuzz: response heads and their verdicts")
struct ResponseFuzzTests {
    private static let heads = [
        "Content-Length: 1000\nETag: \"a\"\nAccept-Ranges: bytes\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
        "Content-Range: bytes 0-999/1000\nContent-Length: 1000\nETag: \"a\"\nContent-Type: application/zip",
        "Content-Range: bytes 100-199/1000\nContent-Length: 100\nETag: W/\"a\"\nDate: Sun, 06 Nov 1994 08:49:37 GMT",
        "Content-Range: bytes 100-199/1000\nContent-Length: 100\nETag: \"a\"",
        "Content-Range: bytes 100-199/1000\nETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
        "Content-Range: bytes */1000\nETag: \"a\"", "Location: ../x?y#z\nRetry-After: 120",
        "Transfer-Encoding: chunked\nContent-Disposition: attachment; filename*=UTF-8''%e2%82%ac.zip",
        "Content-Encoding: gzip\nContent-Type: text/html; charset=utf-8\nRepr-Digest: sha-256=:AAAA:",
        "Content-Type: multipart/byteranges; boundary=x\nDigest: md5=AAAA\nx-goog-hash: crc32c=AAAAAA==",
    ]
    private static let words = [
        "\nContent-Length: 100", "\nContent-Range: bytes 100-199/1000", "\nContent-Range: bytes 100-1099/2000",
        "\nETag: \"a\"", "\nETag: \"b\"", "\nLocation: //x/", "\nRetry-After: -1", "\nTransfer-Encoding: identity",
        "bytes 100-199/*", "99", "100", "199", "1000", "1001", "\n",
    ]
    private static let otherStatuses = [200, 200, 200, 204, 301, 304, 400, 401, 404, 412, 416, 416, 429, 501, 503, 999]
    private static let rungs: [ResponseQuestion.Rung] = [
        .ifRange, .repeatedValidator, .weakWithOverlap, .checksum, .unsafe,
    ]

    @Test("No response joins bytes without proof, and no message or name is unsafe")
    func verdict() throws {
        let source = try HTTPURL(parsing: "https://example.org/file.iso")
        Fuzzer(name: "ResponseEvaluator", corpus: Self.heads, words: Self.words).run { text, generator in
            let lines = text.split(separator: "\n").map { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                return (String(parts.first ?? ""), parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "")
            }
            let status = generator.below(2) == 0 ? 206 : generator.one(of: Self.otherStatuses)
            let head = ResponseHead(status: status, fields: HTTPFields(lines))
            let question = Self.question(source, &generator)
            return Self.violation(head, question) ?? Self.violation(ResponseFacts(head, nameOfURL: question.nameOfURL))
        }
    }

    private static func question(_ source: HTTPURL, _ generator: inout Generator) -> ResponseQuestion {
        let tags = ["\"a\"", "W/\"a\"", ""].map { EntityTag(fieldValue: $0) }
        let known = Representation(
            completeLength: generator.below(4) == 0 ? nil : 1000, entityTag: generator.one(of: tags))
        let asked: [ResponseQuestion.Asked] = [
            .whole, .from(0), .from(100), .from(100), .range(ByteRange(100, 200)), .range(ByteRange(100, 200)),
        ]
        let knowsNothing = generator.below(4) == 0
        var question = ResponseQuestion(
            asked: generator.one(of: asked), rung: knowsNothing ? .nothingToJoin : generator.one(of: rungs),
            known: knowsNothing ? nil : known, holdsAllBeforeAsked: generator.below(2) == 0,
            workedBefore: generator.below(2) == 0, expectsWebPage: generator.below(2) == 0, source: source)
        question.asksMirror = generator.below(4) == 0
        return question
    }

    private static func violation(_ head: ResponseHead, _ question: ResponseQuestion) -> String? {
        let verdict = ResponseEvaluator.verdict(on: head, to: question)
        switch verdict {
        case .partial(let range, let facts): return violation(range, facts, question)
        case .whole(let facts):
            if ![200, 203].contains(facts.status) || question.known != nil {
                return "a whole file of status \(facts.status)"
            }
            if facts.isChunked, case .length = facts.contentLength { return "two framings" }
        case .complete(let length):
            if !question.holdsAllBeforeAsked || question.asked.lowerBound != length { return "complete at \(length)" }
        case .empty(let facts): if question.known != nil { return "empty with status \(facts.status)" }
        case .redirect(let location, _, _): if location.isEmpty { return "a redirect to nothing" }
        case .transient(let reason, let delay, _, _):
            if let delay, delay < .zero || delay > RetryAfter.longestDelay { return "a delay of \(delay)" }
            return unsafe(reason)
        case .linkExpired(_, let error), .permanent(let error): return unsafe(error.message)
        case .askWithoutRange(let reason), .changed(let reason, _, _), .rangeRefused(let reason), .weakened(let reason),
            .webPage(let reason):
            return unsafe(reason)
        case .rangeIgnored(let facts):
            if ![200, 203].contains(facts.status) { return "a whole file of status \(facts.status)" }
        case .conditionRefused(let reason):
            return question.rung == .ifRange ? unsafe(reason) : "a condition that was not sent"
        case .notModified: return "a condition that was not sent"
        }
        return nil
    }

    /// Evaluates the proof ladder again, from the fields alone. Returns the violated property, or `nil`.
    private static func violation(
        _ range: ByteRange, _ facts: ResponseFacts, _ question: ResponseQuestion
    ) -> String? {
        let isLabelled = facts.status == 206 || facts.status == 200 && facts.hasContentRange
        if !isLabelled || range.isEmpty { return "a part with status \(facts.status)" }
        if range.lowerBound != question.asked.lowerBound { return "a part at the wrong place" }
        if case .range(let asked) = question.asked, range.upperBound > asked.upperBound { return "too much" }
        if case .whole = question.asked, question.known != nil { return "a part of what was requested whole" }
        if case .length(let length) = facts.contentLength, length != range.count { return "two lengths" }
        guard let known = question.known else { return nil }
        let given = facts.representation
        if facts.contentCoding != nil { return "a part of a coded file" }
        if let length = known.completeLength, let other = given.completeLength, length != other {
            return "another length"
        }
        let isProved =
            switch question.rung {
            case .nothingToJoin: false
            case .checksum: true
            case .unsafe: given.completeLength == known.completeLength
            case .ifRange: known.entityTag == given.entityTag
            case .repeatedValidator:
                known.entityTag == given.entityTag && known.entityTag?.isWeak == false && given.completeLength != nil
            case .weakWithOverlap: given.completeLength != nil && sameTag(known, given)
            }
        return isProved ? nil : "a part without proof by \(question.rung)"
    }

    private static func sameTag(_ known: Representation, _ given: Representation) -> Bool {
        guard let mine = known.entityTag, let theirs = given.entityTag else { return false }
        return mine.matchesWeakly(theirs)
    }

    private static func violation(_ facts: ResponseFacts) -> String? {
        if SafeFileName.make(facts.fileName)?.utf8.elementsEqual(facts.fileName.utf8) != true {
            return "the unsafe name \(facts.fileName)"
        }
        if let length = facts.representation.completeLength, length < 0 { return "a length of \(length)" }
        if facts.hasContentRange != (facts.contentRange != nil), facts.contentRange != nil {
            return "a range of no field"
        }
        return nil
    }

    private static func unsafe(_ message: String) -> String? {
        message.utf8.contains(where: ASCII.isControl) ? "a control character in a message" : nil
    }
}
