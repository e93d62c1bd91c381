import FaultServer
import Foundation
import Testing
import Towline
@testable import TowlineService
import TowlineWire

/// The OpenAPI document and the metrics match the service.
@Suite struct DocumentTests {
    @Test func everyRouteIsInTheDocumentAndBack() async throws {
        let site = try await ServiceSite()
        let document = try await site.ask("GET", "/openapi.json").object
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var documented: Set<String> = []
        for (path, methods) in paths {
            for method in methods.keys { documented.insert("\(method.uppercased()) \(path)") }
        }
        var served: Set<String> = []
        let roots = try DownloadRoots([site.downloads])
        let feed = EventFeed(site.service.downloader, interval: 1)
        let sessions = try SessionList(in: site.configuration.stateDirectory, for: site.service.token)
        let table = DownloadService.table(
            site.service.downloader, site.service.token, sessions, site.service.signInCodes, roots, feed,
            LiveSettings(site.configuration), site.configuration)
        for (path, answers) in table.handlers where path != "/" && !path.hasPrefix("/page/") {
            for method in answers.keys where method != .head { served.insert("\(method.rawValue) \(path)") }
        }
        #expect(documented == served)
        try await site.stop()
    }

    @Test func everyReferenceOfTheDocumentLeadsSomewhere() async throws {
        let site = try await ServiceSite()
        let answer = try await site.ask("GET", "/openapi.json")
        let text = String(decoding: answer.body, as: UTF8.self)
        let schemas = (answer.object["components"] as? [String: Any])?["schemas"] as? [String: Any] ?? [:]
        let names = text.matches(of: /"#\/components\/schemas\/(\w+)"/).map { String($0.1) }
        #expect(!names.isEmpty)
        #expect(Set(names).isSubset(of: Set(schemas.keys)))
        try await site.stop()
    }

    @Test func everyOptionOfATransferIsInTheDocument() async throws {
        let site = try await ServiceSite()
        let document = try await site.ask("GET", "/openapi.json").object
        let schemas = (document["components"] as? [String: Any])?["schemas"] as? [String: Any]
        let request = try #require(schemas?["NewDownload"] as? [String: Any])
        let properties = try #require(request["properties"] as? [String: Any])
        #expect(Set(TransferOptions.CodingKeys.allCases.map(\.rawValue)).isSubset(of: properties.keys))
        try await site.stop()
    }

    @Test func metricsAreWellFormed() async throws {
        let site = try await ServiceSite()
        _ = try await site.add("/x", ["startsPaused": true])
        let answer = try await RawExchange.send("GET", "/metrics", to: site.socket)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(text.contains("\ntowline_downloads{state=\"paused\"} 1\n"), "\(text)")
        #expect(text.contains("\nprocess_resident_memory_bytes "))
        for line in text.split(separator: "\n") where !line.hasPrefix("# ") {
            #expect(line.wholeMatch(of: /[a-z_]+(\{[a-z]+="[^"]*"\})? -?[0-9.e+]+/) != nil, "\(line)")
        }
        try await site.stop()
    }
}
