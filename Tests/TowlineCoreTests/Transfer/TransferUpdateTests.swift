import Testing
import TowlineCore

/// Conditional requests: an existing file is downloaded again only if the server has another version.
@Suite struct TransferUpdateTests {
    private static let date: Int64 = 1_700_000_000
    private static let dateField = HTTPDate(secondsSince1970: date).fieldValue
    private static let length: Int64 = 1000

    /// Returns the existing file, downloaded from `url`; if `url` is `nil`, another program created the file.
    private static func file(
        tag: String? = "\"a\"", isDated: Bool = true, from url: String? = TransferScript.url
    ) -> ExistingFile {
        let version = url.map {
            PublishedVersion(
                entityTag: tag.flatMap { EntityTag(fieldValue: $0) }, location: PublishedVersion.location($0),
                isDated: isDated)
        }
        return ExistingFile(length: length, modified: date, version: version)
    }

    private static func script(
        _ file: ExistingFile, _ change: (inout TransferTerms) -> Void = { _ in }
    ) throws -> TransferScript {
        var script = try TransferScript(change)
        script.machine.existing = file
        script.feed(.begin(nil))
        return script
    }

    /// Sends the file with a tag. The response ends after 1 MiB, and the next request follows.
    private static func breakOff(_ script: inout TransferScript, tag: String?) {
        script.give(script.last, tag: tag)
        let first = script.last
        script.feed(.prepared)
        script.write(first, to: 1 << 20)
        script.end(first, cut())
        script.now += .seconds(5)
        script.feed(.tick)
    }

    // MARK: The request

    @Test(
        arguments: [
            (file(), "\"a\"", dateField), (file(tag: "W/\"a\""), "W/\"a\"", dateField),
            (file(tag: nil), nil, dateField),
            (file(isDated: false), "\"a\"", nil),
            // No validator, or a tag without a valid form.
            (file(tag: nil, isDated: false), nil, nil), (file(tag: "null", isDated: false), nil, nil),
            // A validator is valid for one URL, and the length of a foreign file has to be seen.
            (file(from: "https://example.org/other.iso"), nil, nil), (file(from: nil), nil, nil),
        ] as [(ExistingFile, String?, String?)])
    func theConditionIsAboutTheBytesThatAreThere(_ file: ExistingFile, _ tag: String?, _ date: String?) throws {
        let plan = try Self.script(file).last
        #expect(plan.field("If-None-Match") == tag && plan.field("If-Modified-Since") == date)
        #expect(plan.field("Range") == "bytes=0-" && plan.field("If-Range") == nil)
        #expect((plan.question.condition == nil) == (tag == nil && date == nil))
    }

    /// Secrets of a URL change and are not part of where a file came from.
    @Test func signaturesDoNotMatter() throws {
        let url = try HTTPURL(parsing: "https://example.org/f?v=2&X-Amz-Signature=abc")
        let other = try HTTPURL(parsing: "https://example.org/f?v=2&X-Amz-Signature=def")
        #expect(Self.file(from: url.withoutSecrets).condition(at: other) != nil)
        #expect(Self.file(from: url.withoutSecrets).condition(at: try HTTPURL(parsing: "https://example.org/f")) == nil)
    }

    /// The target of a redirect is asked with the condition, if the file came from there.
    @Test(arguments: [true, false]) func redirected(_ isSame: Bool) throws {
        let target = "https://cdn.example.net/v1/file.iso"
        var script = try Self.script(Self.file(from: isSame ? target : "https://cdn.example.net/v0/file.iso"))
        #expect(script.last.field("If-None-Match") == nil)
        script.answer(302, [("Location", target)])
        #expect(script.plans.count == 2 && (script.last.field("If-None-Match") == "\"a\"") == isSame)
    }

    // MARK: The answer

    @Test(arguments: [
        [], [("ETag", "W/\"a\"")], [("ETag", "\"a\""), ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")],
    ])
    func notModified(_ fields: [(String, String)]) throws {
        var script = try Self.script(Self.file())
        script.answer(304, fields)
        script.end(.cancelled)
        #expect(script.ending == .upToDate && script.prepares.isEmpty && script.plans.count == 1)
        #expect(TransferSnapshot(of: &script.machine, now: .zero).state == .finished)
    }

    /// A 304 that names another version, and a 412, are asked about without the condition.
    @Test(
        arguments: [
            (304, [("ETag", "\"b\"")], "\"a\""), (304, [("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")], nil),
        ] as [(Int, [(String, String)], String?)])
    func notModifiedButAnother(_ status: Int, _ fields: [(String, String)], _ tag: String?) throws {
        var script = try Self.script(Self.file(tag: tag))
        script.answer(status, fields)
        script.end(script.plans[0], .cancelled)
        #expect(script.ending == nil && script.plans.count == 2)
        #expect(script.last.field("If-None-Match") == nil && script.last.field("If-Modified-Since") == nil)
        #expect(script.last.field("Range") == "bytes=0-")
        // The condition is independent of If-Range.
        Self.breakOff(&script, tag: "\"a\"")
        #expect(script.last.field("If-Range") == "\"a\"")
    }

    /// A refusal of the request is not final: the plain request has neither Range nor condition.
    @Test(arguments: [400, 403, 412]) func refused(_ status: Int) throws {
        for isSequential in [false, true] {
            var script = try Self.script(Self.file()) { $0.options.isSequential = isSequential }
            script.answer(status)
            script.end(script.plans[0], .cancelled)
            guard !isSequential || status == 412 else { continue }
            #expect(script.plans.count == 2, "\(script.actions)")
            #expect(script.last.field("If-None-Match") == nil && script.last.field("If-Modified-Since") == nil)
            if status != 412 || isSequential { #expect(script.last.field("Range") == nil) }
        }
    }

    /// Once the server has sent another version, no request has the condition: neither to resume nor to restart.
    @Test(arguments: ["\"b\"", nil]) func theConditionEndsWithTheFirstAnswer(_ tag: String?) throws {
        var script = try Self.script(Self.file())
        Self.breakOff(&script, tag: tag)
        #expect(script.plans.count == 2)
        #expect(script.last.field("If-None-Match") == nil && script.last.field("If-Modified-Since") == nil)
        #expect(script.last.field("If-Range") == tag)
    }

    @Test(
        "an empty response does not replace a file",
        arguments: [(200, [("Content-Length", "0")]), (416, [("Content-Range", "bytes */0")])]
            as [(Int, [(String, String)])])
    func empty(_ response: (Int, [(String, String)])) throws {
        var script = try Self.script(Self.file(isDated: false))
        script.answer(response.0, response.1)
        script.endCancelled()
        for _ in 0..<100 where script.plans.count == 1 {
            script.now += .milliseconds(100)
            script.feed(.tick)
        }
        #expect(script.ending == nil && script.prepares.isEmpty && script.plans.count == 2)
        script.give(script.last, length: Self.length)
        #expect(script.prepares.last?.representation.completeLength == Self.length)
    }

    /// Transient failures do not end the condition.
    @Test func repeatedAfterAFailure() throws {
        var script = try Self.script(Self.file())
        script.answer(429, [("Retry-After", "1")])
        script.end(script.plans[0], .cancelled)
        script.now += .seconds(5)
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.field("If-None-Match") == "\"a\"")
    }

    /// A 304 to a request without the condition is an error, as usual.
    @Test func unaskedNotModified() throws {
        for file in [Self.file(from: nil), Self.file(tag: nil, isDated: false)] {
            var script = try Self.script(file)
            script.answer(304)
            script.end(.cancelled)
            #expect(script.failure?.code == .invalidResponse)
        }
    }

    // MARK: Comparing with an answer that has the file

    private static func offer(_ tag: String?, _ date: Int64?, length: Int64? = length) -> Representation {
        Representation(
            completeLength: length, entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
            lastModified: date.map { HTTPDate(secondsSince1970: $0) })
    }

    private static let elsewhere = "https://mirror.example/file.iso"

    @Test(
        arguments: [
            // The tag decides. Without a tag, the date decides: an older date means another version, too.
            (file(), offer("\"a\"", date), true), (file(), offer("W/\"a\"", date + 1), true),
            (file(), offer("\"b\"", date), false), (file(), offer(nil, date), true),
            (file(), offer(nil, date - 1), false),
            (file(), offer(nil, date + 1), false), (file(tag: nil), offer("\"a\"", date), true),
            (file(tag: nil, isDated: false), offer("\"a\"", date), false), (file(), offer(nil, nil), false),
            // A constant that is not a tag.
            (file(tag: "null"), offer("null", date), true), (file(tag: "null"), offer("null", date + 1), false),
            // The length; only a URL that the file came from may leave it out.
            (file(), offer("\"a\"", date, length: length + 1), false),
            (file(), offer("\"a\"", date, length: nil), true),
            (file(from: elsewhere), offer("\"a\"", date, length: nil), false),
            // The same tag elsewhere may be another file's: the dates count as well.
            (file(from: elsewhere), offer("\"a\"", date), true),
            (file(from: elsewhere), offer("\"a\"", date + 1), false),
            (file(from: elsewhere), offer("\"a\"", nil), true),
            // A file of another program, as wget -N has it: the same length, and not older.
            (file(from: nil), offer("\"a\"", date), true), (file(from: nil), offer(nil, date - 99), true),
            (file(from: nil), offer(nil, date + 1), false), (file(from: nil), offer("\"a\"", nil), false),
            (file(from: nil), offer(nil, date, length: length - 1), false),
            (file(from: nil), offer(nil, date, length: nil), false),
        ] as [(ExistingFile, Representation, Bool)])
    func isCurrent(_ file: ExistingFile, _ offered: Representation, _ isCurrent: Bool) throws {
        #expect(file.isCurrent(offered, at: try HTTPURL(parsing: TransferScript.url)) == isCurrent)
    }
}
