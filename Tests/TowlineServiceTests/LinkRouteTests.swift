import Foundation
import Testing
import TowlineWire

/// The route that finds links.
@Suite struct LinkRouteTests {
    @Test func linksAreFoundAndNothingIsAdded() async throws {
        let site = try await ServiceSite()
        let text = "name,url\nfilm,http://127.0.0.1:9/f\nmagnet:?xt=1\ncurl http://127.0.0.1:9/g -b 'id=1'"
        let answer = try await site.ask("POST", "/links", ["text": text])
        #expect(answer.status == 200)
        let found = try JSONDecoder().decode(Wire.FoundLinks.self, from: answer.body)
        #expect(found.links == ["http://127.0.0.1:9/f", "http://127.0.0.1:9/g"])
        #expect(found.linesWithoutLink.map(\.number) == [1, 3] && found.linesWithoutLinkCount == 2)
        #expect(found.unsupportedSchemes == ["magnet"])
        #expect(found.headers == [Wire.Header(name: "Cookie", value: "id=1")])
        let list = try await site.ask("GET", "/downloads").object["downloads"] as? [Any]
        #expect(list?.isEmpty == true)
        try await site.stop()
    }

    /// 4 MiB is the size of the largest list of links that the page reads. Each quote has two bytes in JSON.
    @Test(.timeLimit(.minutes(5))) func aTextMayHaveFourMiB() async throws {
        let site = try await ServiceSite()
        let lines = String(repeating: String(repeating: "\"", count: 2047) + "\n", count: 2047)
        let answer = try await site.ask("POST", "/links", ["text": lines])
        #expect(answer.status == 200)
        let found = try JSONDecoder().decode(Wire.FoundLinks.self, from: answer.body)
        #expect(found.linesWithoutLinkCount == 2047 && found.linesWithoutLink.count == 1000)
        #expect(try await site.ask("POST", "/links", ["text": "", "x": 1]).status == 400)
        #expect(try await site.askOverTCP("POST", "/links", body: #"{"text":""}"#).status == 401)
        try await site.stop()
    }
}
