import FaultServer
import Glibc
import Testing

/// A run is killed at each of its system calls that change anything on disk, in turn, until one survives.
@Suite(.serialized) struct KillPointTests {
    /// More than 1 MiB: there is a journal.
    private static let length: Int64 = 1_300_000
    /// Every how many calls in the usual run; the last, where it is published, come one by one.
    private static let step = Torture.pick(5, 1)
    /// The calls at the beginning and the end of a run where something other than bytes and marks is written.
    private static let closeEnd = 24

    /// The numbers of the calls to be killed at, of about `calls`; a run may make more or fewer each time.
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

    /// Where the kernel moves the bytes: at some of them, before and half-way.
    @Test(arguments: ["kill", "killHalfway"]) func aLongDownload(_ strike: String) async throws {
        let run = try await VictimRun(Version(seed: 13, length: VictimRun.long), connections: 1)
        let ending = try await run.victim("kill", 1_000_000)
        let calls = VictimRun.calls(ending)
        #expect(VictimRun.splices(ending) > 30 && calls > 100)
        var tally = Tally("a long download, \(strike)")
        for number in stride(from: calls / 2, to: calls - Self.closeEnd, by: Torture.pick(13, 1)) {
            run.place.clear()
            try await strikeAndFinish(run, strike, number, [run.version], mayBeEmpty: false, &tally)
        }
        tally.report()
        #expect(tally.kills > 3)
        await run.server.stop()
    }

    /// The run that is killed goes on with what an earlier one left.
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
        // What the first one left, and with it how many calls are left, is never quite the same.
        #expect(tally.kills > numbers.count / 2)
        await run.server.stop()
    }

    /// The run that is killed finds that the file changed, and puts another generation in the place of what it held.
    @Test(arguments: ["kill", "killHalfway"])
    func aChangedFile(_ strike: String) async throws {
        let old = Version(seed: 5, length: Self.length)
        let new = old.replaced(seed: 6, length: Self.length + 100_000)
        let run = try await VictimRun(old, connections: 4)
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        var tally = Tally("a changed file, \(strike)")
        for number in Self.numbers(calls + 10) {
            run.server.replace("/file", with: old)
            // A run takes more or fewer calls. One that had all of it before it changed would be published as it was.
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

    /// Small files have no journal, and those that come at once no name before they are published: a kill leaves nothing
    /// of them.
    @Test(arguments: [(30_000, false), (700_000, false), (700_000, true)])
    func aSmallFile(_ length: Int64, _ isLate: Bool) async throws {
        let run = try await VictimRun(Version(seed: 7, length: length), connections: isLate ? 1 : 4, isLate: isLate)
        let isUnnamed = !isLate && run.place.keepsUnnamedFiles
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        #expect(calls > 4)
        var tally = Tally("a small file of \(length)\(isLate ? ", late" : "")")
        for number in 0..<calls + 2 {
            // On a machine with other things to do an answer may be late, and its file has a name then: not five times in a row.
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

    /// The run after a kill is killed too, twenty times in a row at call after call, and nothing is lost by it.
    @Test func recoveryIsKilledAgainAndAgain() async throws {
        let run = try await VictimRun(Version(seed: 8, length: Self.length), connections: 4)
        let calls = VictimRun.calls(try await run.victim("kill", 1_000_000))
        var tally = Tally("recovery")
        for first in stride(from: 4, to: calls, by: Torture.pick(max(1, calls / 6), 3)) {
            run.place.clear()
            // A run makes more or fewer calls each time, so one struck near its end may be over before its turn comes.
            let struck = try await run.victim("kill", first)
            if struck.isSuccess { continue }
            #expect(struck.signal == SIGKILL, "\(struck)")
            for again in 0..<20 {
                // The very first calls come before there is a journal; once it is there, no kill may lose the part file.
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

    // MARK: One kill

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
        // Half of the time the claims are looked at; the other half tow finds what was left as it was left.
        if number % 2 == 1 { tally.note(try run.problemWithClaims(versions: versions), number) }
        tally.note(try await run.finish(), number)
    }
}
