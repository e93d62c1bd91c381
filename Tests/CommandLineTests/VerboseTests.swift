import FaultServer
import Testing

/// Tests `tow get -v`, which explains a download's decisions for a report to its developers.
struct VerboseTests {
    private static let secrets = ["-H", "X-Key: canary", "--user", "canary:canary"]

    private func run(
        _ resource: Resource, _ arguments: [String], more: [String: Resource] = [:]
    ) async throws -> CommandRun.Result {
        let server = try await FaultServer.start(more.merging(["/data.bin": resource]) { $1 })
        let place = try TestDirectory()
        let result = try await CommandRun.run(
            ["get"] + arguments + Self.secrets + [server.url("/data.bin") + "?signature=canary&invite=canary"],
            directory: place.url)
        await server.stop()
        return result
    }

    @Test(arguments: [20_000, 3_000_000] as [Int64]) func requestsResponsesAndDecisions(_ length: Int64) async throws {
        let result = try await run(Resource(length: length), ["-v"])
        #expect(result.status == 0, "\(result.stderr)")
        let lines = result.stderr.split(separator: "\n").filter { $0.hasPrefix("* data.bin: ") }
        for text in ["send request ", "bytes 0-", "of \(length)", "publish the file"] {
            #expect(lines.contains { $0.contains(text) }, "\(text): \(result.stderr)")
        }
        #expect(!result.stderr.contains("canary") && result.text.isEmpty)
    }

    @Test func failuresWithTheirReason() async throws {
        let resource = Resource(
            length: 3_000_000, behaviour: .script([.status(503), .redirect(302, to: "/other?signature=canary")]))
        let result = try await run(
            resource, ["-v", "--retry-wait", "0.1"], more: ["/other": Resource(length: 3_000_000)])
        #expect(result.status == 0, "\(result.stderr)")
        for text in ["a temporary failure (", "a redirect", "/other", "finished"] {
            #expect(result.stderr.contains(text), "\(text): \(result.stderr)")
        }
        #expect(!result.stderr.contains("canary"))
    }

    /// A fast redirect of a small file is followed before a whole transfer begins.
    @Test func aRedirectOfASmallFile() async throws {
        let resource = Resource(
            length: 20_000, behaviour: .always(.redirect(302, to: "/other?invite=canary")))
        let result = try await run(resource, ["-v"], more: ["/other": Resource(length: 20_000)])
        #expect(result.status == 0, "\(result.stderr)")
        for text in ["response to request 1: a redirect -> ", "send request 2 ", "response to request 2: "] {
            #expect(result.stderr.contains(text), "\(text): \(result.stderr)")
        }
        #expect(!result.stderr.contains("canary"))
    }

    @Test func asJSON() async throws {
        let result = try await run(Resource(length: 3_000_000), ["-v", "--json"])
        let traces = try result.objects.filter { $0["event"] as? String == "trace" }
        #expect(traces.count > 2 && traces.allSatisfy { $0["seconds"] is Double && $0["message"] is String })
        #expect(traces.allSatisfy { !"\($0)".contains("canary") })
    }

    @Test func withoutTheOptionNothingIsTraced() async throws {
        let result = try await run(Resource(length: 3_000_000), [])
        #expect(!result.stderr.contains("send request"))
        let json = try await run(Resource(length: 3_000_000), ["--json"])
        #expect(!json.text.contains("trace"))
    }

    @Test func quietAndVerboseExcludeEachOther() async throws {
        let result = try await CommandRun.run(["get", "-q", "-v", "http://127.0.0.1/a"])
        #expect(result.status == 2 && result.stderr.contains("-q and -v cannot be used together"), "\(result.stderr)")
    }
}
