import FaultServer
import Foundation
import Testing
import Towline
@testable import TowlineService
import TowlineWire

/// Tests of the event stream, and of the window of recent events.
@Suite struct EventTests {
    private func id(_ number: UInt64) -> DownloadID { DownloadID(milliseconds: number, random: (0, 0)) }

    @Test func onlyTheNewestOfEachDownloadAndNothingTwice() {
        var window = EventWindow()
        window.put(.download(id(1)), "added", "a1", isAddition: true)
        window.put(.download(id(2)), "added", "b1", isAddition: true)
        window.put(.download(id(1)), "changed", "a2")
        window.putNote("n1")
        window.put(.download(id(1)), "changed", "a3")
        #expect(window.last == 5)
        // A client that does not know the download receives an `added` event with the newest data.
        #expect(
            window.events(after: 0)?.map { [$0.name, $0.data] } == [
                ["added", "b1"], ["noted", "n1"], ["added", "a3"],
            ])
        #expect(window.events(after: 1)?.last == .init(name: "changed", number: 5, data: "a3"))
        #expect(window.events(after: 5) == [])
        // The number 6 was never assigned.
        #expect(window.events(after: 6) == nil)
    }

    @Test func whatIsTooOldIsNotMadeUp() {
        var window = EventWindow(capacity: 10)
        for number in 1...100 { window.putNote("\(number)") }
        #expect(window.events(after: 0) == nil)
        #expect(window.events(after: 95)?.map(\.data) == ["96", "97", "98", "99", "100"])
        // Repeated changes of one download use one entry.
        var other = EventWindow(capacity: 10)
        for number in 1...1000 { other.put(.download(id(1)), "changed", "\(number)") }
        #expect(other.events(after: 0)?.map(\.data) == ["1000"])
    }

    /// Reads events from a new connection until the events fit, and returns all events.
    private func read(
        _ site: ServiceSite, lastEventID: String? = nil, until fits: @escaping @Sendable ([Event]) -> Bool
    ) async throws -> [Event] {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try Self.readNow(site, lastEventID, fits) })
            }
        }
    }

    struct Event: Sendable {
        var name = ""
        var id = ""
        var data = ""
    }

    struct Ended: Error { let events: [Event] }

    private static func readNow(_ site: ServiceSite, _ lastEventID: String?, _ fits: ([Event]) -> Bool) throws
        -> [Event]
    {
        let descriptor = try RawExchange.connect(site.socket)
        defer { close(descriptor) }
        let field = lastEventID.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        RawExchange.write(
            Array("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\(field)\r\n".utf8), to: descriptor)
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            let events = events(text)
            guard count > 0 else { throw Ended(events: events) }
            text += String(decoding: buffer[..<count], as: UTF8.self)
            let now = Self.events(text)
            if fits(now) { return now }
        }
    }

    private static func events(_ text: String) -> [Event] {
        var events: [Event] = []
        var event = Event()
        for line in text.components(separatedBy: CharacterSet.newlines) {
            if line.hasPrefix("event: ") { event = Event(name: String(line.dropFirst(7))) }
            if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
            guard line.hasPrefix("data: ") else { continue }
            event.data = String(line.dropFirst(6))
            events.append(event)
        }
        return events
    }

    /// A proxy must not store, compress or collect the events.
    @Test(.timeLimit(.minutes(1))) func proxiesPassEventsOnAtOnce() async throws {
        let site = try await ServiceSite([:])
        let answer = try await site.ask("HEAD", "/events")
        #expect(answer.status == 200)
        #expect(answer.fields["x-accel-buffering"] == "no")
        #expect(answer.fields["cache-control"] == "no-store, no-transform")
        try await site.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aLimitThatSomebodyElseSetsIsHeard() async throws {
        let site = try await ServiceSite([:])
        let (listens, listening) = AsyncStream<Void>.makeStream()
        async let heard = read(site) {
            if !$0.isEmpty { listening.finish() }
            return $0.contains { $0.data.contains(#""rateLimit":400000"#) }
        }
        for await _ in listens {}
        _ = try await site.ask("PATCH", "/settings", ["rateLimit": 400_000])
        #expect(try await heard.first?.data.contains("rateLimit") == false)
        let (listensAgain, listeningAgain) = AsyncStream<Void>.makeStream()
        async let lifted = read(site) {
            if !$0.isEmpty { listeningAgain.finish() }
            return $0.count > 1 && !($0.last?.data.contains("rateLimit") ?? true)
        }
        for await _ in listensAgain {}
        _ = try await site.ask("PATCH", "/settings", ["rateLimit": NSNull()])
        #expect(try await lifted.last?.name == "totals")
        try await site.stop()
    }

    /// The list is written again while the service runs. Clients that listen and later ones learn of it.
    @Test(.timeLimit(.minutes(1))) func aNoticeOfTheListIsSentToEveryClient() async throws {
        let site = try await ServiceSite([:])
        let (listens, listening) = AsyncStream<Void>.makeStream()
        let isNotice: @Sendable (Event) -> Bool = { $0.name == "notice" && $0.data.contains("written again") }
        async let heard = read(site) { events in
            if !events.isEmpty { listening.finish() }
            return events.contains(where: isNotice) && events.contains { $0.name == "reset" }
        }
        for await _ in listens {}
        try FileManager.default.removeItem(at: site.root.appendingPathComponent("state/registry.sqlite"))
        #expect(try await heard.count(where: isNotice) == 1)
        #expect(try await read(site) { $0.contains(where: isNotice) }.count == 2)
        try await site.stop()
    }

    @Test func aClientHearsOfEverythingAndGoesOnWhereItWas() async throws {
        let version = Version(seed: 5, length: 2_000_000)
        let site = try await ServiceSite(["/a.bin": Resource(version)], rate: 2_000_000)
        async let heard = read(site) { $0.contains { $0.data.contains(#""state":"finished""#) } }
        // Waits for a first event, so that the download is added after the subscription.
        _ = try await read(site) { !$0.isEmpty }
        let id = try await site.add("/a.bin")
        let events = try await heard
        #expect(events.first?.name == "totals")
        #expect(events.contains { $0.name == "added" && $0.data.contains(id) })
        let changes = events.filter { $0.name == "changed" && $0.data.contains(id) }
        #expect(changes.count >= 2)
        #expect(Set(events.map(\.id)).count == events.count)
        let middle = try #require(changes.first)
        let rest = try await read(site, lastEventID: middle.id) {
            $0.contains { $0.data.contains(#""state":"finished""#) }
        }
        #expect(!rest.contains { $0.name == "reset" })
        // After a reconnect, only the newest change is sent.
        #expect(rest.filter { $0.name == "changed" }.count == 1)
        let reset = try await read(site, lastEventID: "other-7") { !$0.isEmpty }
        #expect(reset.first?.name == "reset")
        #expect(try await site.ask("DELETE", "/downloads/\(id)").status == 204)
        try await site.stop()
    }

    @Test func aStreamEndsWithTheServiceAndQuickly() async throws {
        let site = try await ServiceSite()
        async let ended = read(site) { _ in false }
        _ = try await read(site) { !$0.isEmpty }
        let clock = ContinuousClock()
        let took = try await clock.measure { try await site.stop() }
        #expect(took < .seconds(2), "\(took)")
        do {
            _ = try await ended
            Issue.record("the stream did not end")
        } catch {
            #expect(error is Ended)
        }
    }

    /// Downloads without a transfer send no events, so clients must read the list again after such an action.
    @Test(.timeLimit(.minutes(1)), arguments: ["pause-all", "resume-all"])
    func aWordToAllHasTheListReadAgain(_ action: String) async throws {
        let site = try await ServiceSite(["/a": Resource(length: 4_000_000)], rate: 100_000)
        _ = try await site.ask("PATCH", "/settings", ["maximumRunning": 1])
        let first = try await site.add("/a")
        try await site.wait(first, for: .downloading)
        _ = try await site.add("/b", ["startsPaused": action == "resume-all"])
        let (joined, continuation) = AsyncStream.makeStream(of: Void.self)
        let end = ContinuousClock.now + .seconds(10)
        async let events = read(site) { events in
            if !events.isEmpty { continuation.yield() }
            // The service sends a keep-alive every fifteen seconds.
            return events.contains { $0.name == "reset" } || ContinuousClock.now > end
        }
        for await _ in joined { break }
        #expect(try await site.ask("POST", "/actions/\(action)").status == 204)
        #expect(try await events.contains { $0.name == "reset" })
        try await site.stop()
    }

    /// The OpenAPI document has a schema for each event, with each member of its data.
    @Test(.timeLimit(.minutes(1))) func eventsAreAsInTheDocument() async throws {
        let site = try await ServiceSite([
            "/x": Resource(length: 10), "/y": Resource(length: 10, behaviour: .first(2, .status(503))),
        ])
        let (listens, listening) = AsyncStream<Void>.makeStream()
        async let seen = read(site) { events in
            if !events.isEmpty { listening.finish() }
            return Set(events.map(\.name)).isSuperset(
                of: ["added", "changed", "removed", "noted", "totals", "reset"])
        }
        for await _ in listens {}
        let id = try await site.add("/x", ["startsPaused": true])
        for action in ["resume-all", "pause-all"] { _ = try await site.ask("POST", "/actions/" + action, [:]) }
        let other = try await site.add("/y", ["startsPaused": true])
        _ = try await site.ask("POST", "/downloads/\(other)/actions/resume", [:])
        try await site.wait(other, for: .finished)
        _ = try await site.ask("DELETE", "/downloads/" + id)
        let events = try await seen
        let document = try await site.ask("GET", "/openapi.json").object
        let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
        let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
        let responses = paths["/api/v1/events"]?["get"]?["responses"] as? [String: [String: Any]]
        let content = responses?["200"]?["content"] as? [String: [String: Any]]
        let references = try #require(content?["text/event-stream"]?["x-events"] as? [String: [String: String]])
        #expect(references["alive"] != nil)
        for event in events {
            let name = try #require(references[event.name]?["$ref"]?.split(separator: "/").last, "\(event.name)")
            let known = try #require(schemas[String(name)]?["properties"] as? [String: Any])
            let data = try JSONSerialization.jsonObject(with: Data(event.data.utf8)) as? [String: Any]
            #expect(Set(try #require(data).keys).isSubset(of: known.keys), "\(event.name): \(event.data)")
        }
        try await site.stop()
    }
}
