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

    /// A misspelled parameter is refused, with its name. The parameters of the document are accepted.
    @Test func unknownQueryParametersAreRefused() async throws {
        let site = try await ServiceSite()
        let id = try await site.add("/x", ["startsPaused": true])
        let paths = try #require(
            try await site.ask("GET", "/openapi.json").object["paths"] as? [String: [String: [String: Any]]])
        for (path, methods) in paths where path.hasPrefix(Wire.base) && !path.hasSuffix("/events") {
            for (method, operation) in methods {
                let target = path.replacing("{id}", with: id).dropFirst(Wire.base.count)
                let refused = try await site.ask(method.uppercased(), target + "?stat=1", [:])
                let detail = refused.object["detail"] as? String ?? ""
                #expect(refused.status == 400 && detail.hasPrefix("stat: unknown query parameter"), "\(path) \(detail)")
                let parameters = (operation["parameters"] as? [[String: Any]] ?? []).filter {
                    $0["in"] as? String == "query"
                }
                for name in parameters.compactMap({ $0["name"] as? String }) where method != "delete" {
                    let answer = try await site.ask(method.uppercased(), target + "?\(name)=%21", [:])
                    let detail = answer.object["detail"] as? String ?? ""
                    #expect(!detail.contains("unknown query parameter"), "\(path) \(name): \(detail)")
                }
            }
        }
        #expect(try await site.ask("GET", "/downloads/" + id).status == 200, "'?stat=1' removed nothing")
        try await site.stop()
    }

    /// The message of a refused private address names the setting that allows the address.
    @Test func aRefusedAddressNamesTheSetting() async throws {
        let site = try await ServiceSite(["/x": Resource(length: 10)]) { $0.privateAddresses = .nobody }
        let id = try await site.add("/x")
        try await site.wait(id, for: .failed)
        let error = try #require(try await site.ask("GET", "/downloads/" + id).object["error"] as? [String: Any])
        #expect(error["code"] as? String == "addressRefused")
        #expect((error["message"] as? String)?.contains("private-addresses: everybody") == true, "\(error)")
        try await site.stop()
    }

    /// The document lists the error codes and network failures that the library declares.
    @Test func everyErrorCodeIsInTheDocument() async throws {
        let site = try await ServiceSite()
        let document = try await site.ask("GET", "/openapi.json").object
        let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
        let failure = schemas["Failure"]?["properties"] as? [String: [String: Any]]
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/TowlineCore/Errors")
        func declared(_ type: String, in file: String) throws -> [String] {
            let text = try String(contentsOf: sources.appendingPathComponent(file), encoding: .utf8)
            return text.matches(of: /public static let (\w+) = (\w+)\(/).filter { $0.2 == type }.map { String($0.1) }
        }
        let codes = try declared("Code", in: "TowlineError.swift")
        #expect(codes.count > 30 && schemas["ErrorCode"]?["enum"] as? [String] == codes)
        let failures = try declared("NetworkFailure", in: "NetworkFailure.swift")
        #expect(failures.count > 8 && failure?["networkFailure"]?["enum"] as? [String] == failures)
        try await site.stop()
    }
}
