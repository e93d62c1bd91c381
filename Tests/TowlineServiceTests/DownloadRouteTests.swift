import FaultServer
import Foundation
import Testing
import Towline
import TowlineWire

@testable import TowlineService

/// Tests of the API routes of downloads, over the Unix socket.
@Suite struct DownloadRouteTests {
    private static let version = Version(seed: 5, length: 3_000_000)

    @Test func aDownloadIsAddedShownPausedResumedAndFinished() async throws {
        let site = try await ServiceSite(["/a.bin": Resource(Self.version)], rate: 1_500_000)
        let id = try await site.add("/a.bin", ["metadata": ["row": "7"], "group": "films", "directory": "new/below"])
        try await site.wait(id, for: .downloading)
        let short = String(id.suffix(6)).lowercased()
        let paused = try await site.ask("POST", "/downloads/\(short)/actions/pause")
        #expect(paused.status == 200)
        try await site.wait(id, for: .paused)
        let shown = try await site.ask("GET", "/downloads/\(id)").object
        #expect(shown["state"] as? String == "paused")
        #expect(shown["metadata"] as? [String: String] == ["row": "7"])
        #expect(shown["group"] as? String == "films")
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/resume").status == 200)
        try await site.wait(id, for: .finished)
        let finished = try await site.ask("GET", "/downloads/\(id)").object
        #expect(finished["state"] as? String == "finished")
        #expect((finished["followUp"] as? [String: String])?["state"] == "none")
        let file = site.downloads.appendingPathComponent("new/below/a.bin").path
        #expect(try Self.version.content.firstMismatch(inFile: file, length: Self.version.length) == nil)
        let refused = try await site.ask("POST", "/downloads/\(id)/actions/pause")
        #expect(refused.status == 409)
        #expect(refused.object["code"] as? String == "illegalTransition")
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/refetch").status == 200)
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/refetch").status == 409)
        try await site.wait(id, for: .finished)
        let timeline = try await site.ask("GET", "/downloads/\(id)/timeline").object
        let kinds = (timeline["notes"] as? [[String: Any]])?.compactMap { $0["kind"] as? String } ?? []
        #expect(Set(kinds).isSuperset(of: ["paused", "finished", "refetched"]), "\(kinds)")
        #expect(try await site.ask("DELETE", "/downloads/\(id)?files=true").status == 204)
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(try await site.ask("GET", "/downloads/\(id)").status == 404)
        try await site.stop()
    }

    /// `start` is for clients that do not know the state: it has the effect of `Download.start()`.
    @Test func aDownloadStartsInEveryState() async throws {
        let site = try await ServiceSite(["/a.bin": Resource(Self.version)])
        let id = try await site.add("/a.bin", ["startsPaused": true])
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/start").status == 200)
        try await site.wait(id, for: .finished)
        let again = try await site.ask("POST", "/downloads/\(id)/actions/start")
        #expect(again.status == 200 && again.object["state"] as? String == "finished")
        #expect(try await site.ask("POST", "/downloads/01ARZ3NDEKTSV4RRFFQ69G5FAV/actions/start").status == 404)
        try await site.stop()
    }

    @Test func aDownloadIsFoundByItsRequest() async throws {
        let site = try await ServiceSite()
        func find(_ body: [String: Any]) async throws -> [String] {
            let answer = try await site.ask("POST", "/actions/find", body)
            let list = try #require(answer.object["downloads"] as? [[String: Any]], "\(answer.status)")
            return list.compactMap { $0["id"] as? String }
        }
        let url = site.server.url("/a.bin?token=1")
        let id = try await site.add("/a.bin?token=1", ["startsPaused": true, "directory": "films"])
        #expect(try await find(["url": url, "directory": "films"]) == [id])
        #expect(try await find(["url": url]) == [])
        #expect(try await find(["url": site.server.url("/a.bin?token=2"), "directory": "films"]) == [])
        #expect(try await find(["url": url, "directory": "missing/below"]) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: site.downloads.path) == ["films"])
        #expect(try await site.ask("POST", "/actions/find", ["url": url, "directory": "/etc"]).status == 400)
        try await site.stop()
    }

    /// The list of downloads keeps metadata, so a client cannot store any amount.
    @Test func metadataHasALimit() async throws {
        let site = try await ServiceSite([:])
        let text = String(repeating: "é", count: 1024)
        let many = Dictionary(uniqueKeysWithValues: (0..<65).map { ("\($0)", "x") })
        let cases: [([String: String], Bool)] = [
            (["a": text], true), (["a": text + "x"], false), ([String(text.prefix(257)): "x"], false), (many, false),
        ]
        for (metadata, isAccepted) in cases {
            let body: [String: Any] = ["url": "http://127.0.0.1:9/f", "metadata": metadata, "startsPaused": true]
            #expect(try await site.ask("POST", "/downloads", body).status == (isAccepted ? 201 : 400))
        }
        let id = try await site.add("/a.bin", ["startsPaused": true])
        #expect(try await site.ask("PATCH", "/downloads/\(id)", ["metadata": many]).status == 400)
        try await site.stop()
    }

    /// A mirror over http is refused for a file over https, unless a checksum proves the bytes.
    @Test func aMirrorWithoutTLSIsRefused() async throws {
        let site = try await ServiceSite([:])
        let checksum = "sha256:" + String(repeating: "ab", count: 32)
        for (extra, status) in [([:], 400), (["checksum": checksum], 201)] as [([String: String], Int)] {
            var body: [String: Any] = [
                "url": "https://127.0.0.1:9/f", "mirrors": ["http://127.0.0.1:9/f"], "startsPaused": true,
            ]
            body.merge(extra) { $1 }
            let answer = try await site.ask("POST", "/downloads", body)
            #expect(answer.status == status, "\(answer.object)")
        }
        try await site.stop()
    }

    /// Tests of the segment map of a running, a paused and a finished download.
    @Test func segmentsTellWhatIsThereAndWhatIsOnItsWay() async throws {
        let site = try await ServiceSite(["/a.bin": Resource(Self.version)], rate: 1_000_000)
        let id = try await site.add("/a.bin", ["connections": 2])
        func segments() async throws -> (written: [[Int]], attempts: [[String: Any]], length: Int?) {
            let answer = try await site.ask("GET", "/downloads/\(id)/segments")
            #expect(answer.status == 200)
            return (
                answer.object["written"] as? [[Int]] ?? [], answer.object["attempts"] as? [[String: Any]] ?? [],
                answer.object["completeLength"] as? Int
            )
        }
        try await site.wait(id) { $0.heldBytes > 500_000 && $0.connections == 2 }
        let running = try await segments()
        #expect(running.length == 3_000_000)
        #expect(running.written.reduce(0) { $0 + $1[1] - $1[0] } > 400_000)
        #expect(!running.attempts.isEmpty)
        for attempt in running.attempts {
            let (from, to) = (attempt["from"] as? Int ?? -1, attempt["to"] as? Int ?? -1)
            let position = attempt["position"] as? Int ?? -1
            #expect(0 <= from && from <= position && position <= to && to <= 3_000_000, "\(attempt)")
        }
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/pause").status == 200)
        try await site.wait(id, for: .paused)
        let paused = try await segments()
        let held = try await site.ask("GET", "/downloads/\(id)").object["heldBytes"] as? Int
        #expect(paused.attempts.isEmpty && paused.length == 3_000_000)
        #expect(paused.written.reduce(0) { $0 + $1[1] - $1[0] } == held)
        #expect(try await site.ask("POST", "/downloads/\(id)/actions/resume").status == 200)
        try await site.wait(id, for: .finished)
        let finished = try await segments()
        #expect(finished.written == [[0, 3_000_000]] && finished.attempts.isEmpty)
        #expect(try await site.ask("GET", "/downloads/0000000000/segments").status == 404)
        try await site.stop()
    }

    @Test func manyRangesAreToldAsFewer() {
        // Makes every third gap between ranges wide.
        var ranges: [Range<Int64>] = []
        var start: Int64 = 10
        for number in 0..<30 {
            ranges.append(start..<start + 5)
            start += 5 + (number % 3 == 2 ? 100 : 1)
        }
        #expect(Wire.Segments.told(ranges, most: 30).count == 30)
        let told = Wire.Segments.told(ranges, most: 10)
        #expect(told.count == 10)
        #expect(told.allSatisfy { $0[1] - $0[0] == 17 })
        #expect(told.first?.first == 10 && told.last?.last == ranges.last.map { $0.upperBound })
    }

    @Test func theListHasOrderFilterAndPages() async throws {
        let site = try await ServiceSite()
        for number in 1...5 {
            _ = try await site.add("/\(number)", ["startsPaused": true, "priority": number, "name": "n\(number)"])
        }
        func names(_ query: String) async throws -> ([String], String?, [String: Any]) {
            let answer = try await site.ask("GET", "/downloads?" + query)
            #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            let list = answer.object["downloads"] as? [[String: Any]] ?? []
            return (
                list.compactMap { $0["name"] as? String }, answer.object["next"] as? String,
                answer.object["totals"] as? [String: Any] ?? [:]
            )
        }
        #expect(try await names("").0 == ["n5", "n4", "n3", "n2", "n1"])
        let first = try await names("order=name&limit=2")
        #expect(first.0 == ["n1", "n2"])
        #expect((first.2["counts"] as? [String: Int])?["paused"] == 5)
        let cursor = try #require(first.1)
        #expect(try await names("order=name&limit=2&cursor=" + cursor).0 == ["n3", "n4"])
        #expect(try await names("state=active").0 == [])
        #expect(try await names("text=N3").0 == ["n3"])
        for query in ["order=colour", "limit=0", "limit=x", "state=mad", "descending=7", "cursor=nonsense"] {
            #expect(try await site.ask("GET", "/downloads?" + query).status == 400, "\(query)")
        }
        try await site.stop()
    }

    /// A transfer that waits for its next attempt is shown as waiting, and so is found and counted as waiting.
    @Test(.timeLimit(.minutes(1))) func aWaitBetweenAttemptsCountsAsWaiting() async throws {
        let site = try await ServiceSite()
        _ = try await site.ask("POST", "/downloads", ["url": "http://127.0.0.1:1/a", "priority": 1])
        _ = try await site.add("/b", ["startsPaused": true])
        var list: [String: Any] = [:]
        func states() -> [String] {
            (list["downloads"] as? [[String: Any]] ?? []).compactMap { $0["state"] as? String }
        }
        while states() != ["waiting", "paused"] { list = try await site.ask("GET", "/downloads").object }
        let counts = (list["totals"] as? [String: Any])?["counts"] as? [String: Int] ?? [:]
        #expect(counts["waiting"] == 1 && counts["active", default: 0] == 0, "\(counts)")
        let answer = try await RawExchange.send("GET", "/metrics", to: site.socket)
        let metrics = String(decoding: answer.body, as: UTF8.self)
        #expect(metrics.contains("towline_downloads{state=\"waiting\"} 1\n"), "\(metrics)")
        for (filter, expected) in [
            ("waiting", ["waiting"]), ("active", []), ("paused,waiting", ["waiting", "paused"]),
        ] {
            list = try await site.ask("GET", "/downloads?state=" + filter).object
            #expect(states() == expected, "\(filter)")
        }
        try await site.stop()
    }

    /// A field in the body of an action would not take effect: all downloads would be paused instead of one group.
    @Test func theBodyOfAnActionHasNoFields() async throws {
        let site = try await ServiceSite()
        let id = try await site.add("/x", ["startsPaused": true])
        func send(_ method: String, _ path: String, _ body: String) async throws -> RawExchange.Answer {
            try await RawExchange.send(
                method, Wire.base + path, to: site.socket, fields: ["Content-Type": "application/json"],
                body: Array(body.utf8))
        }
        let actions = ["pause", "resume", "cancel", "retry", "start", "refetch"]
        let paths = ["/actions/pause-all", "/actions/resume-all", "/session/codes"]
        let one = "/downloads/" + id
        for path in actions.map({ one + "/actions/" + $0 }) + paths {
            for body in [#"{"group":"films"}"#, #"{"ids":["X"]}"#, "[]", "null", "7", "x", "{}{}"] {
                #expect(try await send("POST", path, body).status == 400, "\(path) \(body)")
            }
        }
        for path in [one, "/session"] {
            #expect(try await send("DELETE", path, #"{"files":true}"#).status == 400, "\(path)")
        }
        #expect(try await site.ask("GET", one).object["state"] as? String == "paused")
        let detail = try await send("POST", paths[0], #"{"group":"films"}"#).object["detail"] as? String ?? ""
        #expect(detail.contains("unknown field 'group'") && detail.contains("query parameters: group"), "\(detail)")
        #expect(try await send("POST", paths[0], String(repeating: " ", count: 5000)).status == 413)
        for body in ["", "{}", " { }\n"] { #expect(try await send("POST", paths[0], body).status == 204, "\(body)") }
        try await site.stop()
    }

    /// An empty value selects nothing that a client can mean, and the list would end a text at NUL.
    @Test func emptyValuesAndControlCharactersAreRefused() async throws {
        let site = try await ServiceSite()
        let id = try await site.add("/x", ["startsPaused": true, "group": "a"])
        let names = ["order", "descending", "state", "group", "text", "cursor", "limit"]
        let queries =
            names.map { $0 + "=" } + ["descending", "state=,", "state=paused,", "text=%00", "text=x%00", "group=a%00b"]
        for query in queries {
            #expect(try await site.ask("GET", "/downloads?" + query).status == 400, "\(query)")
        }
        for action in ["pause-all", "resume-all"] {
            for query in ["group=", "group", "group=a%00b", "group=a%0A"] {
                #expect(try await site.ask("POST", "/actions/\(action)?\(query)").status == 400, "\(action) \(query)")
            }
        }
        for query in ["files=", "files"] {
            #expect(try await site.ask("DELETE", "/downloads/\(id)?\(query)").status == 400, "\(query)")
        }
        let answer = try await site.ask("GET", "/downloads/" + id)
        #expect(answer.status == 200 && answer.object["state"] as? String == "paused")
        for group in ["a\0b", "a\n", "\u{1B}[2J", "\u{9B}"] {
            let body: [String: Any] = ["url": site.server.url("/y"), "startsPaused": true, "group": group]
            #expect(try await site.ask("POST", "/downloads", body).status == 400)
            #expect(try await site.ask("PATCH", "/downloads/" + id, ["group": group]).status == 400)
            #expect(try await site.ask("PATCH", "/settings", ["groups": [group: 1]]).status == 400)
        }
        #expect(try await site.ask("GET", "/downloads/" + id).object["group"] as? String == "a")
        let metrics = try await RawExchange.send("GET", "/metrics?frob=1", to: site.socket)
        #expect(metrics.status == 400)
        try await site.stop()
    }

    /// A client that repeats a parameter expects both values to count.
    @Test func aRepeatedParameterIsRefused() async throws {
        let site = try await ServiceSite()
        let answer = try await site.ask("GET", "/downloads?state=failed&state=finished")
        #expect(answer.status == 400 && (answer.object["detail"] as? String)?.hasPrefix("state:") == true)
        #expect(try await site.ask("GET", "/downloads?state=Failed,%20finished").status == 200)
        try await site.stop()
    }

    @Test func changesAreMadeAndClearedAndNothingElseIsTaken() async throws {
        let site = try await ServiceSite()
        let first = try await site.add("/1", ["startsPaused": true])
        let second = try await site.add("/2", ["startsPaused": true])
        let changed = try await site.ask(
            "PATCH", "/downloads/\(first)", ["priority": 3, "group": "g", "rateLimit": 1000, "connections": 2])
        #expect(changed.status == 200)
        #expect(changed.object["priority"] as? Int == 3)
        #expect(changed.object["group"] as? String == "g")
        let cleared = try await site.ask("PATCH", "/downloads/\(first)", ["group": NSNull(), "priority": 0])
        #expect(cleared.object["group"] == nil)
        #expect(try await site.ask("PATCH", "/downloads/\(second)", ["before": first]).status == 200)
        let list = try await site.ask("GET", "/downloads").object["downloads"] as? [[String: Any]] ?? []
        #expect(list.compactMap { $0["id"] as? String } == [second, first])
        let bad: [[String: Any]] = [
            ["nonsense": 1], ["priority": "high"], ["connections": 0], ["connections": 1000], ["rateLimit": -1],
            ["priority": Int.min],
            ["headers": [["name": "A", "value": "b"]]], ["url": "ftp://x/y"], ["before": "ZZZZZZ"],
        ]
        for change in bad {
            let answer = try await site.ask("PATCH", "/downloads/\(first)", change)
            #expect(answer.status == 400, "\(change)")
            #expect(answer.fields["content-type"] == "application/problem+json")
        }
        try await site.stop()
    }

    @Test func mirrorsBringWhatTheFirstURLDoesNotHave() async throws {
        let site = try await ServiceSite(["/a": Resource(Self.version)])
        let id = try await site.add("/none", ["mirrors": [site.server.url("/a")], "name": "a"])
        try await site.wait(id, for: .finished)
        let secret = ["url": site.server.url("/a"), "mirrors": ["http://me:secret@example.org/a"]] as [String: Any]
        #expect(try await site.ask("POST", "/downloads", secret).status == 400)
        let many =
            ["url": site.server.url("/a"), "mirrors": (0..<17).map { "http://example.org/\($0)" }] as [String: Any]
        #expect(try await site.ask("POST", "/downloads", many).status == 400)
        try await site.stop()
    }

    @Test func settingsAndTotalsAndHosts() async throws {
        let site = try await ServiceSite(["/a": Resource(Self.version)], rate: 200_000)
        let settings = try await site.ask(
            "PATCH", "/settings", ["maximumRunning": 7, "rateLimit": 5_000_000, "groups": ["g": 2]])
        #expect(settings.object["maximumRunning"] as? Int == 7)
        #expect(settings.object["groups"] as? [String: Int] == ["g": 2])
        let cleared = try await site.ask("PATCH", "/settings", ["rateLimit": NSNull(), "groups": ["g": NSNull()]])
        #expect(cleared.object["rateLimit"] == nil, "missing values are omitted")
        #expect(cleared.object["groups"] as? [String: Int] == [:])
        #expect(try await site.ask("PATCH", "/settings", ["maximumRunning": 0]).status == 400)
        let id = try await site.add("/a")
        try await site.wait(id, for: .downloading)
        #expect(try await site.ask("GET", "/totals").object["running"] as? Int == 1)
        let hosts = try await site.ask("GET", "/hosts").object["hosts"] as? [[String: Any]] ?? []
        #expect(hosts.first?["running"] as? Int == 1)
        #expect(try await site.ask("POST", "/actions/pause-all").status == 204)
        try await site.wait(id, for: .paused)
        #expect(try await site.ask("GET", "/health").object["status"] as? String == "ok")
        try await site.stop()
    }

    /// A stopping service releases the list before it deletes the socket. The socket of a new service is kept.
    @Test func aSocketThatIsAnothersStays() async throws {
        let site = try await ServiceSite()
        let path = site.root.appendingPathComponent("run/towd.sock")
        try FileManager.default.removeItem(at: path)
        try Data("another's".utf8).write(to: path)
        try await site.stop()
        #expect(try Data(contentsOf: path) == Data("another's".utf8))
    }

    @Test func oneOfAStateDirectoryAndTheListIsThereAgain() async throws {
        let site = try await ServiceSite(["/a": Resource(Self.version)], rate: 1_000_000)
        let id = try await site.add("/a")
        try await site.wait(id) { $0.heldBytes > 500_000 }
        await #expect(throws: TowlineError.self) { try await ServiceSite(root: site.root) }
        // The second service did not remove the socket of the first service.
        #expect(try await site.ask("GET", "/health").status == 200)
        let clock = ContinuousClock()
        let took = try await clock.measure { try await site.stop() }
        #expect(took < .seconds(2), "\(took)")
        #expect(!FileManager.default.fileExists(atPath: site.root.appendingPathComponent("run/towd.sock").path))
        let again = try await ServiceSite(root: site.root)
        let list = try await again.ask("GET", "/downloads").object["downloads"] as? [[String: Any]] ?? []
        #expect(list.compactMap { $0["id"] as? String } == [id])
        #expect((list.first?["heldBytes"] as? Int ?? 0) > 0)
        try await again.stop()
    }

    /// Without a colon, the text may be a token that a browser filled in.
    @Test func aUserWithoutAPasswordIsRefused() async throws {
        let site = try await ServiceSite(["/a": Resource(length: 10)])
        let body = ["url": site.server.url("/a"), "user": "CANARY"]
        let answer = try await site.ask("POST", "/downloads", body)
        #expect(answer.status == 400)
        let detail = try #require(answer.object["detail"] as? String)
        #expect(detail.hasPrefix("user: ") && !detail.contains("CANARY"), "\(detail)")
        #expect(site.server.log.requests.isEmpty)
        _ = try await site.add("/a", ["user": "name:"])
        try await site.stop()
    }

    /// The IDs of downloads that are added at the same time begin with the same characters.
    @Test func aShortIDThatIsAmbiguousIsRefused() async throws {
        let site = try await ServiceSite([:])
        let ids = [try await site.add("/a", ["startsPaused": true]), try await site.add("/b", ["startsPaused": true])]
        let answer = try await site.ask("DELETE", "/downloads/\(ids[0].prefix(5))")
        #expect(answer.object["code"] as? String == "unusableOption", "\(answer)")
        for id in ids { #expect(try await site.ask("GET", "/downloads/\(id)").status == 200) }
        try await site.stop()
    }

    /// A renamed folder: the download resumes from its bytes, and no byte is requested again.
    @Test(.timeLimit(.minutes(2))) func aMovedDirectoryIsTold() async throws {
        let site = try await ServiceSite(["/a.bin": Resource(length: 8 << 20, seed: 3)], rate: 4 << 20)
        let id = try await site.add("/a.bin", ["directory": "films", "connections": 1])
        try await site.wait(id) { $0.heldBytes > 3 << 20 }
        let target = "/downloads/" + id
        #expect(try await site.ask("PATCH", target, ["directory": "moved"]).status == 400)
        let other = site.downloads.appendingPathComponent("moved")
        try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
        #expect(try await site.ask("PATCH", target, ["directory": "moved"]).status == 409, "it runs")
        _ = try await site.ask("POST", target + "/actions/pause")
        try await site.wait(id, for: .paused)
        let still = try await site.ask("PATCH", target, ["directory": "moved"])
        #expect(still.status == 409)
        #expect((still.object["detail"] as? String)?.contains("are still in") == true)
        try FileManager.default.moveItem(
            at: site.downloads.appendingPathComponent("films"), to: site.downloads.appendingPathComponent("renamed"))
        #expect(try await site.ask("PATCH", target, ["directory": "/etc"]).status == 400)
        let moved = try await site.ask("PATCH", target, ["directory": "renamed"])
        #expect(moved.status == 200)
        #expect((moved.object["directory"] as? String)?.hasSuffix("/renamed") == true)
        let before = site.server.log.requests.count
        _ = try await site.ask("POST", target + "/actions/resume")
        try await site.wait(id, for: .finished)
        let file = site.downloads.appendingPathComponent("renamed/a.bin").path
        #expect(try FaultContent(seed: 3).firstMismatch(inFile: file, length: 8 << 20) == nil)
        let sent = site.server.log.requests.dropFirst(before).reduce(0) { $0 + $1.bodyBytes }
        #expect(sent > 0 && sent < 6 << 20, "\(sent)")
        try await site.stop()
    }
}
