import FaultServer
import Foundation
import Testing
@testable import TowlineService
import TowlineWire

/// Tests of a player that reads the content of a running download.
@Suite struct ContentRouteTests {
    private static let version = Version(seed: 21, length: 16 << 20)

    private func get(
        _ site: ServiceSite, _ id: String, _ fields: [String: String] = [:], method: String = "GET"
    ) async throws -> RawExchange.Answer {
        try await RawExchange.send(method, Wire.base + "/downloads/\(id)/content", to: site.socket, fields: fields)
    }

    @Test(.timeLimit(.minutes(2)))
    func o4_theMiddleAndTheEndOfARunningDownloadAreRightAndComeFirst() async throws {
        let site = try await ServiceSite(["/film.mp4": Resource(Self.version)], rate: 1_500_000)
        let id = try await site.add("/film.mp4", ["connections": 1])
        try await site.wait(id) { $0.heldBytes > 200_000 }
        let length = Self.version.length
        for (field, range) in [
            ("bytes=9000000-9199999", 9_000_000..<9_200_000), ("bytes=-100000", (length - 100_000)..<length),
        ] as [(String, Range<Int64>)] {
            let answer = try await get(site, id, ["Range": field])
            #expect(answer.status == 206)
            #expect(answer.fields["content-range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)")
            #expect(answer.fields["content-type"] == "video/mp4")
            #expect(Array(answer.body) == Self.version.content.bytes(in: range))
        }
        let snapshot = try await site.ask("GET", "/downloads/\(id)").object
        #expect((snapshot["heldBytes"] as? Int64 ?? .max) < length / 2, "the rest came later")
        let asked = site.server.log.requests("/film.mp4").compactMap { $0.info.field("Range") }
        #expect(asked.contains { $0.hasPrefix("bytes=9000000-") }, "\(asked)")
        #expect(asked.contains { $0.hasPrefix("bytes=\(length - 100_000)-") }, "\(asked)")
        try await site.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func conditionsAndRangesAreThoseOfTheStandard() async throws {
        let version = Version(seed: 4, length: 500_000)
        let site = try await ServiceSite(["/a.bin": Resource(version)])
        let id = try await site.add("/a.bin")
        try await site.wait(id, for: .finished)
        let whole = try await get(site, id)
        #expect(whole.status == 200 && Array(whole.body) == version.content.bytes(in: 0..<version.length))
        let tag = try #require(whole.fields["etag"])
        let part = try await get(site, id, ["Range": "bytes=10-19", "If-Range": tag])
        #expect(part.status == 206 && part.body.count == 10)
        let other = try await get(site, id, ["Range": "bytes=10-19", "If-Range": "\"other\""])
        #expect(other.status == 200 && other.body.count == 500_000)
        let beyond = try await get(site, id, ["Range": "bytes=500000-"])
        #expect(beyond.status == 416 && beyond.fields["content-range"] == "bytes */500000")
        let head = try await get(site, id, method: "HEAD")
        #expect(head.status == 200 && head.fields["content-length"] == "500000" && head.body.isEmpty)
        try await site.stop()
    }

    /// A browser has the file already, and a program expects a version (RFC 9110 §13).
    @Test(.timeLimit(.minutes(1)), arguments: ["GET", "HEAD"])
    func conditionsOnTheVersionAreThoseOfTheStandard(_ method: String) async throws {
        let site = try await ServiceSite(["/a.txt": Resource(Version(seed: 4, length: 1000))])
        let id = try await site.add("/a.txt")
        try await site.wait(id, for: .finished)
        let whole = try await get(site, id)
        let tag = try #require(whole.fields["etag"])
        let cases: [([String: String], Int)] = [
            (["If-None-Match": tag], 304), (["If-None-Match": "W/" + tag], 304), (["If-None-Match": "*"], 304),
            (["If-None-Match": "\"a,b\", W/\"c\" ,\(tag)"], 304), (["If-None-Match": "\"x\""], 200),
            (["If-None-Match": String(tag.dropFirst().dropLast())], 200),
            (["If-Match": tag], 200), (["If-Match": "\"x\", \(tag)"], 200), (["If-Match": "*"], 200),
            (["If-Match": "\"x\""], 412), (["If-Match": "W/" + tag], 412),
            (["If-Match": "\"x\"", "If-None-Match": tag], 412), (["If-Match": tag, "If-None-Match": tag], 304),
            (["If-None-Match": tag, "Range": "bytes=0-9"], 304), (["If-Match": tag, "Range": "bytes=0-9"], 206),
            (["If-None-Match": tag, "Range": "bytes=5000-"], 304), (["If-Match": "\"x\"", "Range": "bytes=0-9"], 412),
        ]
        for (fields, status) in cases {
            let answer = try await get(site, id, fields, method: method)
            #expect(answer.status == status, "\(fields)")
            guard status == 304 else { continue }
            #expect(answer.body.isEmpty && answer.fields["content-length"] == nil, "\(fields)")
            // A cache takes the fields of this response: among them must be the policy of the file.
            for name in ["etag", "cache-control", "content-security-policy"] {
                #expect(answer.fields[name] == whole.fields[name], "\(name)")
            }
        }
        try await site.stop()
    }

    /// A downloaded web page must not run in the origin of the service, with the user's session.
    @Test(arguments: ["page.html", "picture.svg", "code.js", "page.xhtml", "noending", "style.css", "x.pdf"])
    func nothingThatCouldRunIsShown(_ name: String) async throws {
        let site = try await ServiceSite(["/\(name)": Resource(Version(seed: 1, length: 100))])
        let id = try await site.add("/\(name)")
        try await site.wait(id, for: .finished)
        let answer = try await get(site, id)
        #expect(answer.fields["content-type"] == "application/octet-stream")
        #expect(answer.fields["content-disposition"]?.hasPrefix("attachment") == true)
        #expect(answer.fields["content-security-policy"]?.hasPrefix("sandbox; default-src 'none'") == true)
        #expect(answer.fields["x-content-type-options"] == "nosniff")
        try await site.stop()
    }

    @Test func aFileThatALinkTookOutOfTheRootsIsNotGiven() async throws {
        let site = try await ServiceSite(["/a": Resource(Version(seed: 1, length: 100))])
        let id = try await site.add("/a", ["directory": "sub"])
        try await site.wait(id, for: .finished)
        let sub = site.downloads.appendingPathComponent("sub")
        try FileManager.default.moveItem(at: sub, to: site.root.appendingPathComponent("elsewhere"))
        try FileManager.default.createSymbolicLink(
            at: sub, withDestinationURL: site.root.appendingPathComponent("elsewhere"))
        #expect(try await get(site, id).status == 403)
        try FileManager.default.removeItem(at: sub)
        try FileManager.default.createDirectory(at: sub, withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            atPath: sub.path + "/a", withDestinationPath: site.root.path + "/elsewhere/a")
        #expect(try await get(site, id).status == 400)
        try await site.stop()
    }

    @Test func whatHasNotBegunIsWaitedForAndThenRefused() async throws {
        let site = try await ServiceSite(["/a": Resource(Self.version, behaviour: .always(.stallBeforeHead))]) {
            $0.contentPatience = .milliseconds(300)
        }
        let id = try await site.add("/a")
        #expect(try await get(site, id).status == 503)
        _ = try await site.ask("POST", "/downloads/\(id)/actions/pause")
        #expect(try await get(site, id).status == 409)
        #expect(try await get(site, "0000").status == 404)
        try await site.stop()
    }

    /// A disconnected client must not keep its priority over other clients.
    @Test(.timeLimit(.minutes(1)))
    func aPausedDownloadGivesTheBytesThatItHas() async throws {
        let site = try await ServiceSite(["/film.mp4": Resource(Self.version)], rate: 1_500_000)
        let id = try await site.add("/film.mp4", ["connections": 1])
        try await site.wait(id) { $0.heldBytes > 200_000 }
        _ = try await site.ask("POST", "/downloads/\(id)/actions/pause")
        try await site.wait(id, for: .paused)
        let first = try await get(site, id, ["Range": "bytes=1000-1999"])
        #expect(first.status == 206 && Array(first.body) == Self.version.content.bytes(in: 1000..<2000))
        let missing = try await get(site, id, ["Range": "bytes=15000000-15000999"])
        #expect(missing.status == 409 && String(decoding: missing.body, as: UTF8.self).contains("Resume the download"))
        try await site.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func aPlayerThatLeavesIsForgotten() async throws {
        let gate = Gate()
        let site = try await ServiceSite([
            "/a": Resource(Self.version, rate: 1_000_000, behaviour: .after(1, .wait(after: 0, for: gate)))
        ])
        let id = try await site.add("/a", ["connections": 1])
        try await site.wait(id) { $0.heldBytes > 200_000 }
        let descriptor = try RawExchange.connect(site.socket)
        let head =
            "GET \(Wire.base)/downloads/\(id)/content HTTP/1.1\r\nHost: localhost\r\nRange: bytes=12000000-\r\n\r\n"
        RawExchange.write(Array(head.utf8), to: descriptor)
        await site.server.log.wait { $0.requests("/a").count >= 2 }
        close(descriptor)
        gate.open()
        // If the reader still existed, its read-ahead of eight megabytes would have priority.
        let after = try await get(site, id, ["Range": "bytes=6000000-6000999"])
        #expect(Array(after.body) == Self.version.content.bytes(in: 6_000_000..<6_001_000))
        try await site.stop()
    }

    @Test func rangesAreReadAsTheStandardSays() {
        func read(_ text: String?) -> RangeField { RangeField(text, length: 100) }
        #expect(read(nil) == .whole)
        #expect(read("bytes=0-") == .part(0..<100))
        #expect(read("bytes=0-0") == .part(0..<1))
        #expect(read("BYTES = 5-9") == .whole)
        #expect(read("Bytes=5-9") == .part(5..<10))
        #expect(read("bytes=90-200") == .part(90..<100))
        #expect(read("bytes=-1") == .part(99..<100))
        #expect(read("bytes=-500") == .part(0..<100))
        #expect(read("bytes=-0") == .unsatisfiable)
        #expect(read("bytes=100-") == .unsatisfiable)
        #expect(read("bytes=99999999999999999999-") == .unsatisfiable)
        #expect(read("bytes=0-99999999999999999999") == .part(0..<100))
        for text in [
            "bytes=5-4", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-2,5-6", "items=0-1", "bytes=+1-2", "0-1",
            "bytes=--1",
        ] {
            #expect(read(text) == .whole, "\(text)")
        }
        #expect(RangeField("bytes=0-", length: 0) == .unsatisfiable)
        #expect(RangeField("bytes=-5", length: 0) == .unsatisfiable)
    }
}
