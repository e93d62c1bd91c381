import FaultServer
import Glibc
import Testing

/// Kills runs at each system call that changes the disk, one call in each run, until a run survives.
@Suite(.serialized) struct KillPointTests {
    /// The length of a file with a journal: more than 1 MiB.
    private static let length: Int64 = 1_300_000
    /// The step between the tested calls in the normal run. Calls near the beginning and the end are all tested.
    private static let step = Torture.pick(5, 1)
    /// The number of calls at the beginning and at the end of a run that write more than bytes and marks.
    private static let closeEnd = 24

    /// Returns the numbers of the calls to kill a run at. The number of calls differs slightly from `calls` in each
    /// run.
    private static func numbers(_ calls: Int) -> [Int] {
        (0..<calls + 8).filter { $0 < closeEnd || $0 > calls - closeEnd || $0 % step == 0 }
    }

    @Test(arguments: ["kill", "killHalfway"], [1, 4])
    func aNewDownload(_ strike: String, _ connections: Int) async throws {
        let run = try await VictimRun(Version(seed: 3, length: Self.length), connections: connections)
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        #expect(calls > 30)
        var tally = Tally("a new download, \(strike), -x \(connections)")
        for number in Self.numbers(calls) {
            run.place.clear()
            try await strikeAndFinish(run, strike, number, [run.version], mayBeEmpty: number == 0, &tally)
        }
        tally.report()
        #expect(tally.kills > 30)
        await run.server.stop()
    }

    /// Kills a long download, whose bytes the kernel moves (`splice`), before and halfway through some of the calls.
    @Test(arguments: ["kill", "killHalfway"]) func aLongDownload(_ strike: String) async throws {
        let run = try await VictimRun(Version(seed: 13, length: VictimRun.long), connections: 1)
        let calls = VictimRun.calls(try await run.spliced())
        #expect(calls > 100)
        var tally = Tally("a long download, \(strike)")
        for number in stride(from: calls / 2, to: calls - Self.closeEnd, by: Torture.pick(13, 1)) {
            run.place.clear()
            try await strikeAndFinish(run, strike, number, [run.version], mayBeEmpty: false, &tally)
        }
        tally.report()
        #expect(tally.kills > 3)
        await run.server.stop()
    }

    /// Kills a run that resumes the bytes of an earlier killed run.
    @Test(arguments: ["kill", "killHalfway"])
    func aResumedDownload(_ strike: String) async throws {
        let run = try await VictimRun(Version(seed: 4, length: Self.length), connections: 4)
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        run.place.clear()
        #expect(try await run.victim("kill", calls / 2).signal == SIGKILL)
        let numbers = Self.numbers(VictimRun.calls(try await run.victim("kill", 1_000_000)))
        #expect(numbers.count > 10)
        var tally = Tally("a resumed download, \(strike)")
        for number in numbers {
            run.place.clear()
            #expect(try await run.victim("kill", calls / 2).signal == SIGKILL)
            try await strikeAndFinish(run, strike, number, [run.version], mayBeEmpty: false, &tally)
        }
        tally.report()
        // The first run leaves different bytes each time, so that the number of the remaining calls varies.
        #expect(tally.kills > numbers.count / 2)
        await run.server.stop()
    }

    /// Kills a run that detects a changed file and replaces the earlier bytes with a new generation.
    @Test(arguments: ["kill", "killHalfway"])
    func aChangedFile(_ strike: String) async throws {
        let old = Version(seed: 5, length: Self.length)
        let new = old.replaced(seed: 6, length: Self.length + 100_000)
        let run = try await VictimRun(old, connections: 4)
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        var tally = Tally("a changed file, \(strike)")
        for number in Self.numbers(calls + 10) {
            run.server.replace("/file", with: old)
            // The number of calls varies. A run with all bytes before the change would publish the old version.
            var first = calls * 2 / 3
            repeat {
                run.place.clear()
                #expect(try await run.victim("kill", first).signal == SIGKILL)
                first = first * 3 / 4
            } while try run.holdsAll(old)
            run.server.replace("/file", with: new)
            try await strikeAndFinish(run, strike, number, [old, new], mayBeEmpty: false, &tally)
        }
        tally.report()
        #expect(tally.kills > 30)
        await run.server.stop()
    }

    /// Small files have no journal. Small files that arrive at once have no name before they are published: a kill
    /// leaves no bytes of these files.
    @Test(arguments: [(30_000, false), (700_000, false), (700_000, true)])
    func aSmallFile(_ length: Int64, _ isLate: Bool) async throws {
        let run = try await VictimRun(Version(seed: 7, length: length), connections: isLate ? 1 : 4, isLate: isLate)
        let isUnnamed = !isLate && run.place.keepsUnnamedFiles
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        #expect(calls > 4)
        var tally = Tally("a small file of \(length)\(isLate ? ", late" : "")")
        for number in 0..<calls + 2 {
            // On a busy machine, a response may be late, and its file then has a name. Five late responses in a row are
            // a failure.
            var isLeft = isUnnamed
            for _ in 0..<5 where isLeft {
                run.place.clear()
                let ending = try await run.victim("kill", number)
                isLeft = ending.signal != nil && run.place.has(run.name + ".tow")
            }
            if isLeft { tally.note("left over", number) }
            run.place.clear()
            try await strikeAndFinish(
                run, "kill", number, [run.version], mayBeEmpty: isUnnamed || number == 0, &tally)
        }
        tally.report()
        #expect(tally.kills >= calls - 2)
        await run.server.stop()
    }

    /// Kills the run after a kill too, up to twenty times in a row at different calls. No bytes are lost.
    @Test func recoveryIsKilledAgainAndAgain() async throws {
        let run = try await VictimRun(Version(seed: 8, length: Self.length), connections: 4)
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        var tally = Tally("recovery")
        for first in stride(from: 4, to: calls, by: Torture.pick(max(1, calls / 6), 3)) {
            run.place.clear()
            // The number of calls varies, so that a run may end before a call near its end.
            let struck = try await run.victim("kill", first)
            if struck.isSuccess { continue }
            #expect(struck.signal == SIGKILL, "\(struck)")
            for again in 0..<20 {
                // The first calls are made before the journal exists. After that, no kill may lose the part file.
                let hasBegun = run.hasClaims
                let ending = try await run.victim(again % 2 == 0 ? "kill" : "killHalfway", again % 10)
                if ending.isSuccess { break }
                #expect(ending.signal == SIGKILL, "\(ending)")
                tally.kills += 1
                tally.note(run.problemAfterKill(versions: [run.version], mayBeEmpty: !hasBegun), again)
            }
            tally.note(try run.problemWithClaims(versions: [run.version]), first)
            tally.note(try await run.finish(), first)
        }
        tally.report()
        #expect(tally.kills > 20)
        await run.server.stop()
    }

    // MARK: A single kill

    private struct Tally {
        let what: String
        var kills = 0
        var survivors = 0
        var problems: [String] = []

        init(_ what: String) { self.what = what }

        mutating func note(_ problem: String?, _ number: Int) {
            if let problem { problems.append("\(what), call \(number): \(problem)") }
        }

        func report() {
            print("kill points, \(what): \(kills) kills, \(survivors) runs survived, \(problems.count) problems")
            #expect(problems.isEmpty, "\(problems.prefix(5))")
        }
    }

    private func strikeAndFinish(
        _ run: VictimRun, _ strike: String, _ number: Int, _ versions: [Version], mayBeEmpty: Bool, _ tally: inout Tally
    ) async throws {
        let ending = try await run.victim(strike, number)
        if ending.signal == SIGKILL, !ending.isLate { tally.kills += 1 } else { tally.survivors += 1 }
        if ending.isLate || (ending.signal == nil && !ending.isSuccess) { tally.note("\(ending)", number) }
        tally.note(run.problemAfterKill(versions: versions, mayBeEmpty: mayBeEmpty), number)
        // Half of the runs check the claims, which changes the files. In the other half, `tow` finds them unchanged.
        if number % 2 == 1 { tally.note(try run.problemWithClaims(versions: versions), number) }
        tally.note(try await run.finish(), number)
    }
}
