import Testing

@testable import TowlineCore

@Suite("Web pages instead of files")
struct WebPageAnswerTests {
    private static let pageFields = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "3000")]

    private func isPossible(
        _ path: String, to final: String? = nil, _ fields: [(String, String)] = pageFields, status: Int = 200,
        _ change: (inout ResponseQuestion) -> Void = { _ in }
    ) throws -> Bool {
        let url = try HTTPURL(parsing: "https://example.org" + path)
        var question = ResponseQuestion(asked: .from(0), rung: .nothingToJoin, known: nil, source: url)
        change(&question)
        let verdict = ResponseEvaluator.verdict(
            on: ResponseHead(status: status, fields: HTTPFields(fields)), to: question)
        let answered = try final.map { try HTTPURL(parsing: "https://example.org" + $0) } ?? url
        return WebPage.isPossible(verdict, from: answered, question)
    }

    @Test(
        "the name in the URL, or in the target of a redirect, is that of another kind of file",
        arguments: [
            ("/image.iso", nil, true), ("/a.tar.gz", nil, true), ("/A.ZIP", nil, true), ("/x.iso?id=1", nil, true),
            ("/latest", "/files/x.deb", true), ("/get.php?f=1", "/x.pdf", true), ("/x.iso", "/login.html", true),
            ("/manual.html", nil, false), ("/manual.htm", "/x.iso", false), ("/", nil, false), ("/manual", nil, false),
            ("/wiki/Node.js", nil, false), ("/v1.2", nil, false), ("/index.php", nil, false), ("/x.iso/", nil, false),
        ] as [(String, String?, Bool)])
    func byURL(_ path: String, _ final: String?, _ expected: Bool) throws {
        #expect(try isPossible(path, to: final) == expected)
    }

    @Test("the user's name for the file comes first, then the server's")
    func byName() throws {
        #expect(try isPossible("/download") { $0.fileName = "x.iso" })
        #expect(try !isPossible("/x.iso") { $0.fileName = "x.html" })
        #expect(try isPossible("/x.iso") { $0.fileName = "x" })
        let named = Self.pageFields + [("Content-Disposition", "attachment; filename=x.pdf")]
        #expect(try isPossible("/download", named))
    }

    @Test("earlier bytes show another kind of file, whatever the name")
    func byEarlierBytes() throws {
        #expect(try isPossible("/download") { $0.earlierMediaType = "application/octet-stream" })
        #expect(try !isPossible("/download") { $0.earlierMediaType = "text/html" })
        #expect(try isPossible("/x.iso") { $0.earlierMediaType = "text/html" })
    }

    @Test("only a media type of pages, in an answer that describes the file, unless the user accepts pages")
    func others() throws {
        #expect(try isPossible("/x.iso", [("Content-Type", "application/xhtml+xml")]))
        #expect(try isPossible("/x.iso", Self.pageFields + [("Content-Range", "bytes 0-2999/3000")], status: 206))
        #expect(try !isPossible("/x.iso", [("Content-Type", "text/plain")]))
        #expect(try !isPossible("/x.iso", []))
        #expect(try !isPossible("/x.iso", status: 404))
        #expect(try !isPossible("/x.iso") { $0.acceptsWebPages = true })
    }

    @Test(
        "the beginning of a page",
        arguments: [
            ("<!DOCTYPE html>", true), ("<!doctype HTML PUBLIC", true), (" \r\n\t<html>", true),
            ("<HTML lang=en>", true),
            ("<html\n", true), ("<!-- x", true), ("<?xml version='1.0'?>\n<html xmlns=", true), ("<p>", true),
            ("<br/>", true),
            ("PK\u{3}\u{4}", false), ("text <html>", false), ("<svg>", false), ("<?xml version='1.0'?><svg>", false),
            ("<htmlx>", false), ("<portal>", false), ("#!/bin/sh", false), ("<>", false), ("<!doctype svg>", false),
            ("", nil), ("  \n", nil), ("<", nil), ("<!DOCTYPE ht", nil), ("<html", nil), ("<?xml version=", nil),
        ] as [(String, Bool?)])
    func beginnings(_ text: String, _ expected: Bool?) {
        #expect(WebPage.isPage(Array(text.utf8)) == expected)
        #expect(WebPage.isPage([0xEF, 0xBB, 0xBF] + Array(text.utf8)) == expected)
    }

    @Test("UTF-16 with a byte order mark")
    func wide() {
        let bytes: [UInt8] = "<html>".utf8.flatMap { [$0, UInt8(0)] }
        #expect(WebPage.isPage([0xFF, 0xFE] + bytes) == true)
        #expect(WebPage.isPage([0xFE, 0xFF, 0x00] + bytes.dropLast()) == true)
    }

    // MARK: After the verdict

    @Test("a page at the start is refused after two attempts, with the option that accepts it")
    func atTheStart() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        for _ in 0..<2 {
            script.feed(.answered(script.last.id, .webPage(reason: WebPage.reason)))
            script.endCancelled()
            script.now += .seconds(5)
            script.feed(.tick)
        }
        #expect(script.plans.count == 2 && script.prepares.isEmpty)
        #expect(script.failure?.code == .transient)
        #expect(script.failure?.message.contains(Remedy.webPages.rawValue) == true)
    }

    @Test("the media type of bytes that a restart replaces is known until there are new ones")
    func afterARestart() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, [("Content-Length", "1000000"), ("Content-Type", "video/mp4")])
        script.feed(.prepared)
        script.write(to: 400_000)
        script.end(cut())
        // A response that broke and cannot be resumed is a network failure: the next request waits.
        #expect(script.plans.count == 1 && script.notices(.restarted).isEmpty)
        script.now += .seconds(5)
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.notices(.restarted).count == 1)
        #expect(script.last.question.known == nil && script.last.question.earlierMediaType == "video/mp4")
        script.answer(200, [("Content-Length", "1000000"), ("Content-Type", "video/mp4")])
        script.feed(.prepared)
        script.end(cut())
        script.now += .seconds(5)
        script.feed(.tick)
        #expect(script.plans.count == 3 && script.last.question.earlierMediaType == nil)
    }

    @Test("with --accept-html, a page in the middle of a download is a changed file")
    func accepted() throws {
        var script = try TransferScript { $0.options.acceptsWebPages = true }
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        for _ in 0..<2 {
            script.answer(200, Self.pageFields)
            script.endCancelled()
        }
        #expect(script.prepares.count == 2)
    }
}
