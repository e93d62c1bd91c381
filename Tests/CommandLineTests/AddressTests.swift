import FaultServer
import Foundation
import Testing

/// The forms in which users name servers: without a scheme, beyond ASCII, with a zone, with `--resolve` and `-H Host:`.
struct AddressTests {
    private static let length: Int64 = 100_000

    private func get(
        _ arguments: [String], environment: [String: String] = [:],
        _ check: (CommandRun.Result, FaultServer) throws -> Void
    ) async throws {
        let server = try await FaultServer.start(["/a": Resource(length: Self.length, seed: 3)])
        let place = try TestDirectory()
        let port = try #require(URL(string: server.url("/a"))?.port)
        let words = arguments.map { $0.replacingOccurrences(of: "PORT", with: "\(port)") }
        let result = try await CommandRun.run(["get"] + words, directory: place.url, environment: environment)
        if result.status == 0 {
            #expect(try FaultContent(seed: 3).firstMismatch(inFile: place.path("a"), length: Self.length) == nil)
        }
        try check(result, server)
        await server.stop()
    }

    @Test(arguments: [
        ["127.0.0.1:PORT/a"], ["localhost:PORT/a"], ["--no-proxy", "-4", "localhost:PORT/a"],
        ["--resolve", "any.example:PORT:127.0.0.1", "http://any.example:PORT/a"],
        ["--resolve", "bücher.example:PORT:127.0.0.1", "bücher.example:PORT/a"],
    ]) func theFileComes(_ arguments: [String]) async throws {
        for locale in ["C", "C.UTF-8", "", "tlh_QO.UTF-8"] {
            let environment = ["LC_ALL": locale, "LANG": locale, "http_proxy": ""]
            try await get(arguments, environment: environment) { result, _ in
                #expect(result.status == 0, "\(locale): \(result.stderr)")
            }
        }
    }

    @Test(arguments: [
        ["magnet:?xt=urn:btih:0"], ["gopher://127.0.0.1/x"], ["file:///etc/passwd"], ["user:secret@127.0.0.1:PORT/a"],
        ["-4", "-6", "127.0.0.1:PORT/a"], ["-6", "127.0.0.1:PORT/a"], ["-4", "http://[::1]:PORT/a"],
        ["--proxy", "http://p:1", "--no-proxy", "127.0.0.1:PORT/a"], ["-H", "Host: a b", "127.0.0.1:PORT/a"],
        ["--resolve", "x", "127.0.0.1:PORT/a"],
    ]) func theseAreUsageErrors(_ arguments: [String]) async throws {
        try await get(arguments) { result, server in
            #expect(result.status == 2, "\(arguments): \(result.stderr)")
            #expect(!result.stderr.contains("secret"))
            #expect(server.log.requests.isEmpty)
        }
    }

    @Test func theUsersHostFieldTakesThePlaceOfTheURLs() async throws {
        try await get(["-H", "Host: other.example:81", "127.0.0.1:PORT/a"]) { result, server in
            #expect(result.status == 0, "\(result.stderr)")
            let fields = server.log.requests.map { $0.info.fields.filter { $0.0.lowercased() == "host" }.map(\.1) }
            #expect(fields.allSatisfy { $0 == ["other.example:81"] }, "\(fields)")
        }
    }
}
