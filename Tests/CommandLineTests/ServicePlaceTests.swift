import FaultServer
import Foundation
import Testing

/// `tow` finds the `towd` of its state directory, whatever the environment variables are.
struct ServicePlaceTests {
    /// Runs a program with `HOME` in a directory, with or without `XDG_RUNTIME_DIR`.
    private static func environment(_ place: TestDirectory, hasSession: Bool) throws -> [String: String] {
        let runtime = place.path("run")
        try FileManager.default.createDirectory(
            atPath: runtime, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let variables = ["HOME": place.url.path, "PATH": CommandRun.products.path + ":/usr/bin:/bin"]
        return hasSession ? variables.merging(["XDG_RUNTIME_DIR": runtime]) { $1 } : variables
    }

    private static func tow(_ words: [String], _ environment: [String: String]) async throws -> CommandRun.Result {
        try await CommandRun(words, environment: environment).finish()
    }

    /// cron, sudo and shells of containers have no `XDG_RUNTIME_DIR`.
    @Test(.timeLimit(.minutes(2)), arguments: [true, false])
    func theServiceIsFoundFromAnotherEnvironment(isStartedInSession: Bool) async throws {
        let server = try await FaultServer.start(["/a.bin": Resource(length: 1000)])
        let place = try TestDirectory()
        let own = try Self.environment(place, hasSession: isStartedInSession)
        let other = try Self.environment(place, hasSession: !isStartedInSession)
        // The web page is turned off, because its port may be in use.
        try FileManager.default.createDirectory(
            atPath: place.path(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: none\n".utf8).write(to: place.file(".config/towline/towd.yaml"))
        let started = try await Self.tow(["add", "--paused", server.url("/a.bin")], own)
        #expect(started.status == 0, "\(started.stderr)")
        let listed = try await Self.tow(["list"], other)
        #expect(listed.status == 0 && listed.text.contains("a.bin"), "\(listed.stderr)")
        let added = try await Self.tow(["add", "--paused", server.url("/b.bin")], other)
        #expect(added.status == 0, "\(added.stderr)")
        let stopped = try await Self.tow(["service", "stop"], other)
        #expect(stopped.text.hasPrefix("towd stopped."), "\(stopped.text) \(stopped.stderr)")
        let again = try await Self.tow(["service", "stop"], own)
        #expect(again.text.hasPrefix("towd is not running."), "\(again.text) \(again.stderr)")
        await server.stop()
    }

    /// After a crash, the record names a socket on which no process listens.
    @Test(.timeLimit(.minutes(2))) func anOutdatedRecordPreventsNoStart() async throws {
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        #expect(try await service.tow(["list"]).status == 0)
        service.kill()
        #expect(FileManager.default.fileExists(atPath: place.path("state/socket-path")))
        let moved = ["--state", place.path("state"), "--socket", place.path("other.sock")]
        let added = try await CommandRun(["add", "--paused", "http://127.0.0.1:9/a"] + moved).finish()
        #expect(added.status == 0, "\(added.stderr)")
        // Without the option, the new record leads to the new socket.
        #expect(try await CommandRun(["list", "--state", place.path("state")]).finish().status == 0)
        #expect(try await CommandRun(["service", "stop", "--state", place.path("state")]).finish().status == 0)
    }

    /// A `towd` that does not answer is not "not running".
    @Test(.timeLimit(.minutes(2))) func aServiceWithoutItsSocketIsStopped() async throws {
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        #expect(try await service.tow(["list"]).status == 0)
        try FileManager.default.removeItem(atPath: place.path("state/towd.sock"))
        let result = try await CommandRun(["service", "stop", "--state", place.path("state")]).finish()
        #expect(result.text.hasPrefix("towd stopped."), "\(result.text) \(result.stderr)")
        service.kill()
    }

    /// A stopped process accepts connections, but never responds.
    @Test(.timeLimit(.minutes(2))) func aStoppedProcessIsNamed() async throws {
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        #expect(try await service.tow(["list"]).status == 0)
        let lock = try String(contentsOf: place.file("state/registry.lock"), encoding: .utf8)
        let process = try #require(lock.split(separator: " ").first.flatMap { pid_t($0) })
        #expect(Foundation.kill(process, SIGSTOP) == 0)
        defer { service.kill() }
        let words = ["--state", place.path("state")]
        // Other commands say so on standard error, and wait.
        let list = try CommandRun(["list"] + words)
        let adding = try CommandRun(["add", "--paused", "http://127.0.0.1:9/a"] + words)
        let start = ContinuousClock.now
        let status = try await CommandRun(["service", "status"] + words).finish()
        #expect(status.status == 1 && status.text.contains("process \(process) is towd"), "\(status.text)")
        #expect(ContinuousClock.now - start < .seconds(20), "tow waits 3 s for a response")
        let stop = try await CommandRun(["service", "stop"] + words).finish()
        #expect(stop.status == 1 && stop.stderr.contains("kill -KILL \(process)"), "\(stop.stderr)")
        #expect(ContinuousClock.now - start < .seconds(55), "no command waits for the time limit of a request")
        #expect(Foundation.kill(process, SIGCONT) == 0)
        for waiting in [list, adding] {
            let result = try await waiting.finish()
            #expect(result.stderr.contains("towd (process \(process)) does not respond"), "\(result.stderr)")
        }
    }

    /// The lock file keeps the number of a process that has ended, which may be that of another `towd` now.
    @Test(.timeLimit(.minutes(2))) func anotherProcessWithTheNumberIsNotNamed() async throws {
        let (place, elsewhere) = (try TestDirectory(), try TestDirectory())
        let other = try ServiceProcess(elsewhere)
        defer { other.kill() }
        #expect(try await other.tow(["list"]).status == 0)
        try FileManager.default.createDirectory(at: place.file("state"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            at: elsewhere.file("state/registry.lock"), to: place.file("state/registry.lock"))
        let status = try await CommandRun(["service", "status", "--state", place.path("state")]).finish()
        #expect(status.status == 1 && status.text.contains("no response"), "\(status.text) \(status.stderr)")
        #expect(!status.text.contains("is towd"), "\(status.text)")
    }

    /// The path of a socket has at most 107 bytes (unix(7)).
    @Test(.timeLimit(.minutes(2))) func aPathThatIsTooLongForASocketIsNamed() async throws {
        let place = try TestDirectory()
        let words = ["--state", place.path(String(repeating: "d", count: 120))]
        let listed = try await CommandRun(["list"] + words).finish()
        #expect(listed.status == 1 && listed.stderr.contains("towd is not running"), "\(listed.stderr)")
        let added = try await CommandRun(["add", "--paused", "http://127.0.0.1:9/a"] + words).finish()
        #expect(added.status == 1 && added.stderr.contains("--socket"), "\(added.stderr)")
    }
}
