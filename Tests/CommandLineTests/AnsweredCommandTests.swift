import FaultServer
import Foundation
import Testing

/// A command that was answered survives a SIGKILL.
struct AnsweredCommandTests {
    /// Each sync takes 0.4 s, which reveals an answer before the sync.
    private static let slowSyncs = [
        "/usr/bin/strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e",
        "inject=fsync,fdatasync:delay_exit=400000",
    ]

    @Test(.timeLimit(.minutes(2)), arguments: [("pause", "paused"), ("cancel", "cancelled")])
    func aStoppedDownloadDoesNotRunAfterAKill(_ command: String, _ state: String) async throws {
        let server = try await FaultServer.start(["/a.bin": Resource(length: 200 << 20, seed: 7, rate: 1 << 20)])
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory, prefix: Self.slowSyncs)
        // `tow add` would start another service, without slow syncs, while this one starts.
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add", "--json", server.url("/a.bin")])
        #expect(added.status == 0, "\(added.stderr)")
        let id = try #require(Self.objects(added).first?["id"] as? String)
        await server.log.wait { $0.bodyBytesServed("/a.bin") > 1 << 20 }
        // The request uses the socket, because `tow pause` waits until it reads the new state.
        let answer = try await CommandRun(
            [
                "-sSf", "-X", "POST", "--unix-socket", directory.path("state/towd.sock"),
                "http://towd/api/v1/downloads/\(id)/actions/\(command)",
            ], program: URL(fileURLWithPath: "/usr/bin/curl")
        ).finish()
        service.kill()
        #expect(answer.status == 0, "\(answer.stderr)")
        try service.start()
        let list = try await service.tow(["list", "--json"])
        #expect(Self.objects(list).map { $0["state"] as? String } == [state], "\(list.text)")
        service.kill()
        await server.stop()
    }

    private static func objects(_ result: CommandRun.Result) -> [[String: Any]] {
        result.text.split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }
}
