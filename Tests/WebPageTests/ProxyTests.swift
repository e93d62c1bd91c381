import Foundation
import TestServers
import Testing

/// Tests of the page behind reverse proxies.
struct ProxyTests {
    private static let programs = ["/usr/sbin/nginx", "/usr/bin/caddy", "/usr/bin/openssl"]

    /// Signing in, the API and the event stream work with each block for nginx and Caddy in `docs/reverse-proxy.md`.
    @Test(
        .timeLimit(.minutes(5)),
        .enabled(if: programs.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }))
    func theBlocksOfTheDocumentWork() async throws {
        let folder = try TemporaryFolder()
        let run = try await PythonProgram(["proxy_test.py", PythonProgram.towd, folder.path], in: folder)
        #expect(run.status == 0, "\(run.output.suffix(5000))")
    }
}
