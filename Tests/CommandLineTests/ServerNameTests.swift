import FaultServer
import Foundation
import Testing

/// Names that a URL, a redirect or a server gives, and lists in UTF-16.
struct ServerNameTests {
    /// With a journal and without.
    private static let lengths: [Int64] = [1000, 2 << 20]

    private func server(_ path: String, _ length: Int64, from: [String: Fault] = [:]) async throws -> FaultServer {
        var resources = from.mapValues { Resource(length: 1, behaviour: .always($0)) }
        resources[path] = Resource(length: length, seed: 7)
        return try await FaultServer.start(resources)
    }

    private func expect(_ place: TestDirectory, _ name: String, _ length: Int64) throws {
        #expect(place.names == [name])
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path(name), length: length) == nil)
    }

    /// The target's name counts, without its query. A second run finds the file.
    @Test(arguments: ["/tool-1.2.bin?sig=a/b", "tool-1.2.bin#x", "//127.0.0.1:PORT/tool-1.2.bin"], lengths)
    func aRedirectNamesTheFile(_ target: String, _ length: Int64) async throws {
        let server = try await server("/tool-1.2.bin", length)
        let location = target.replacingOccurrences(of: "PORT", with: "\(server.port)")
        let place = try TestDirectory()
        let first = try await FaultServer.start([
            "/latest": Resource(length: 1, behaviour: .always(.redirect(to: location)))
        ])
        server.set(.always(.redirect(to: location)), for: "/latest")
        _ = first
        for run in 0..<2 {
            let result = try await CommandRun.run(["get", server.url("/latest")], directory: place.url)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stderr.contains("already downloaded") == (run == 1), "\(result.stderr)")
            try expect(place, "tool-1.2.bin", length)
        }
        await first.stop()
        await server.stop()
    }
}
