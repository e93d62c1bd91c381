import FaultServer
import Glibc
import Testing

/// strace kills the built `tow` at the n-th call of a kind, without test code in the program.
@Suite(.serialized) struct TracedKillTests {
    private static let strace = "/usr/bin/strace"

    /// Returns whether strace is installed and may trace (some containers forbid ptrace(2)).
    private static func canTrace() async -> Bool {
        let ending = try? await ChildProcess.run(strace, ["-o", "/dev/null", "-e", "trace=none", "/bin/true"])
        return ending?.isSuccess ?? false
    }

    @Test(
        .enabled("needs strace and the right to trace") { await canTrace() },
        arguments: ["pwrite64", "fdatasync", "fsync", "renameat2", "unlinkat", "fallocate", "ftruncate"])
    func killedAtEachCall(_ call: String) async throws {
        let run = try await VictimRun(Version(seed: 12, length: 1_200_000), connections: 4)
        var kills = 0
        var number = 1
        var problems: [String] = []
        while number < 400 {
            run.place.clear()
            let ending = try await ChildProcess.run(
                Self.strace,
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                    "inject=\(call):signal=KILL:when=\(number)",
                    ChildProcess.products + "/tow", "get", "-q", "-x", "4", "-o", run.place.file(run.name),
                    run.server.url("/file"),
                ])
            let isKilled = ending.signal == SIGKILL
            if isKilled {
                kills += 1
            } else if !ending.isSuccess {
                problems.append("\(call) \(number): \(ending)")
            }
            let left = run.problemAfterKill(versions: [run.version], mayBeEmpty: false)
            if let problem = left { problems.append("\(call) \(number): \(problem)") }
            if let problem = try await run.finish() { problems.append("\(call) \(number): \(problem)") }
            if !isKilled { break }
            number += call == "pwrite64" ? Torture.pick(9, 1) : 1
        }
        print("traced kills at \(call): \(kills) kills, \(problems.count) problems")
        #expect(problems.isEmpty, "\(problems.prefix(5))")
        if call == "pwrite64" || call == "renameat2" { #expect(kills > 0) }
        await run.server.stop()
    }
}
