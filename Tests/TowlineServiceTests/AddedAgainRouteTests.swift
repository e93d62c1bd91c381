import FaultServer
import Foundation
import Testing
import Towline
import TowlineCore
import TowlineWire

@testable import TowlineService

/// Tests of a request for a download that the list already contains, and of a failed follow-up action.
@Suite(.timeLimit(.minutes(1))) struct AddedAgainRouteTests {
    private static let version = Version(seed: 71, length: 3_000_000)

    /// A field of the API that is no `RequestField` would be ignored.
    @Test func eachFieldOfTheAPIHasADecision() {
        let own = Wire.NewDownload.CodingKeys.allCases.map(\.rawValue)
        let options = TransferOptions.CodingKeys.allCases.map(\.rawValue)
        let decided = RequestField.allCases.map(\.rawValue) + ["url", "directory", "name"]
        #expect(Set(own + options + ["certificateAuthorities", "netrcFile"]) == Set(decided))
    }

    @Test func givenFieldsAreThoseInTheJSON() throws {
        let json = #"{"url": "http://a.test/", "priority": 0, "group": null, "existing": "fail", "stallTimeout": 30}"#
        let request = try JSONDecoder().decode(Wire.NewDownload.self, from: Data(json.utf8))
        #expect(request.given == [.priority, .existing, .stallTimeout])
        let again = try JSONDecoder().decode(Wire.NewDownload.self, from: JSONEncoder().encode(request))
        #expect(again == request, "default values that were given are sent")
    }

    @Test func refusedFieldsAreNamed() async throws {
        let plain = Resource(Self.version, behaviour: .always(.ignoresRange))
        let site = try await ServiceSite(["/a.bin": plain], rate: 1_000_000)
        let id = try await site.add("/a.bin", ["priority": 3])
        try await site.wait(id) { !$0.canPauseWithoutLoss && $0.heldBytes > 0 }
        var body: [String: Any] = ["url": site.server.url("/a.bin"), "connections": 2, "checksum": "md5:" + Self.zeros]
        let refused = try await site.ask("POST", "/downloads", body)
        #expect(refused.status == 409)
        #expect(refused.object["code"] as? String == "optionConflict")
        #expect(refused.object["fields"] as? [String] == ["connections", "checksum"])
        body = ["url": site.server.url("/a.bin"), "priority": 0, "rateLimit": 9_000_000, "group": "g"]
        #expect(try await site.ask("POST", "/downloads", body).status == 201)
        let shown = try await site.ask("GET", "/downloads/\(id)").object
        #expect(shown["priority"] as? Int == 0, "an explicit default value is applied")
        #expect(shown["rateLimit"] as? Int == 9_000_000 && shown["group"] as? String == "g")
        try await site.wait(id, for: .finished)
        let wrong = try await site.ask(
            "POST", "/downloads", ["url": site.server.url("/a.bin"), "checksum": "md5:" + Self.zeros])
        #expect(wrong.status == 409 && wrong.object["code"] as? String == "checksumMismatch")
        #expect(wrong.object["fields"] as? [String] == ["checksum"])
        #expect((wrong.object["detail"] as? String)?.contains("/a.bin is finished and does not match") == true)
        try await site.stop()
    }

    private static let zeros = String(repeating: "0", count: 32)

    @Test func aFailedFollowUpIsAStateOfItsOwn() async throws {
        let site = try await ServiceSite(["/a.zip": Resource(Self.version), "/b.bin": Resource(Self.version)])
        let id = try await site.add("/a.zip", ["unpack": true])
        let other = try await site.add("/b.bin")
        try await site.wait(other, for: .finished)
        try await site.wait(id) { if case .failed = $0.followUp { true } else { false } }
        let shown = try await site.ask("GET", "/downloads/\(id)").object
        #expect(shown["state"] as? String == "follow-up-failed")
        #expect((shown["followUp"] as? [String: Any])?["state"] as? String == "failed")
        func ids(_ state: String) async throws -> [String] {
            let page = try await site.ask("GET", "/downloads?state=\(state)").object
            return (page["downloads"] as? [[String: Any]])?.compactMap { $0["id"] as? String } ?? []
        }
        #expect(try await ids("failed") == [id])
        #expect(try await ids("follow-up-failed") == [id])
        #expect(try await ids("finished") == [other])
        let counts = try await site.ask("GET", "/totals").object["counts"] as? [String: Int]
        #expect(counts?["follow-up-failed"] == 1 && counts?["finished"] == 1 && counts?["failed"] == 0)
        let metrics = try await RawExchange.send("GET", "/metrics", to: site.socket, fields: [:], body: [])
        let lines = String(decoding: metrics.body, as: UTF8.self).split(separator: "\n")
        #expect(lines.contains(#"towline_downloads{state="follow-up-failed"} 1"#))
        #expect(lines.contains(#"towline_downloads{state="finished"} 1"#))
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/retry").status == 200)
        let content = try await site.ask("GET", "/downloads/\(id)/content")
        #expect(content.status == 200 && content.body.count == Self.version.length)
        #expect(try await site.ask("DELETE", "/downloads/\(id)?files=true").status == 204)
        #expect(!FileManager.default.fileExists(atPath: site.downloads.path + "/a.zip"))
        try await site.stop()
    }
}
