import FaultServer
import Glibc
import Testing

/// Makes each system call of a run fail, one in each run. The run succeeds or reports an error, and the next run
/// succeeds.
@Suite(.serialized) struct FailingCallTests {
    @Test(arguments: ["full", "failure", "interrupted", "short", "failureFromThenOn"])
    func theRunEndsWithTheRightFileOrAnError(_ strike: String) async throws {
        let run = try await VictimRun(Version(seed: 9, length: 1_200_000), connections: 3)
        let calls = VictimRun.calls(try await run.victim("none", 0))
        #expect(calls > 40)
        var problems: [String] = []
        var failures = 0
        let stride = Torture.pick(6, 1)
        for number in (0..<calls + 5) where number < 30 || number > calls - 25 || number % stride == 0 {
            run.place.clear()
            let ending = try await run.victim(strike, number)
            if !ending.isSuccess { failures += 1 }
            if let problem = Self.problem(ending, run) { problems.append("\(strike) at \(number): \(problem)") }
            // The mark of a finished file is best effort. Without the mark, the next run reports that the name is
            // taken.
            let isUnmarked = ending.isSuccess
            if let problem = try await run.finish(orOccupied: isUnmarked) {
                problems.append("\(strike) at \(number), then: \(problem)")
            }
        }
        print("failing calls, \(strike): \(calls) calls, \(failures) runs failed, \(problems.count) problems")
        #expect(problems.isEmpty, "\(problems.prefix(5))")
        // Interrupted and short calls are continued.
        if strike == "short" || strike == "interrupted" { #expect(failures == 0) } else { #expect(failures > 10) }
        await run.server.stop()
    }

    /// A long download, whose bytes the kernel moves (`splice`).
    @Test(arguments: ["full", "failure", "interrupted", "short"]) func aLongDownload(_ strike: String) async throws {
        let run = try await VictimRun(Version(seed: 14, length: VictimRun.long), connections: 1)
        let calls = VictimRun.calls(try await run.spliced())
        var problems: [String] = []
        var failures = 0
        // Calls for bytes and for journal marks alternate. An odd step reaches both.
        for number in stride(from: calls / 2, to: calls - 30, by: Torture.pick(17, 1)) {
            run.place.clear()
            let ending = try await run.victim(strike, number)
            if !ending.isSuccess { failures += 1 }
            if let problem = Self.problem(ending, run) { problems.append("\(strike) at \(number): \(problem)") }
            if let problem = try await run.finish() { problems.append("\(strike) at \(number), then: \(problem)") }
        }
        print("failing calls of a long download, \(strike): \(failures) runs failed, \(problems.count) problems")
        #expect(problems.isEmpty, "\(problems.prefix(5))")
        if strike == "short" || strike == "interrupted" { #expect(failures == 0) } else { #expect(failures > 2) }
        await run.server.stop()
    }

    private static func problem(_ ending: ChildProcess.Ending, _ run: VictimRun) -> String? {
        if ending.isLate { return "it hangs" }
        guard let status = ending.status else { return "a signal ended it: \(ending)" }
        if status == 0 { return run.place.problem(run.name, run.version) }
        guard ending.output.hasPrefix("crash-victim: ") else { return "no message: \(ending)" }
        guard run.place.has(run.name) else { return nil }
        // If the error occurred after the rename, the file must be complete.
        let place = try? run.version.content.firstMismatch(
            inFile: run.place.file(run.name), length: run.version.length)
        return place == nil ? nil : "a wrong file, with status \(status)"
    }
}
