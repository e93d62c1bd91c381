import FaultServer
import Glibc
import Testing

/// Kills `tow` repeatedly at random moments, until a run ends normally.
@Suite(.serialized) struct RandomKillTests {
    /// The maximum cost of a kill for each connection in bytes: the bytes since the last journal mark, and the compared
    /// overlap.
    static let boundPerConnection: Int64 = (256 + 16) << 10

    /// The result of one download.
    struct Outcome: Sendable {
        var kills = 0
        var rework: Int64 = 0
        var connections = 0
        var problem: String?

        var reworkPerKillAndConnection: Double { Double(rework) / Double(max(1, kills * connections)) }
    }

    @Test(arguments: [1, 4, 16])
    func filesAreIdenticalAndLittleComesTwice(_ connections: Int) async throws {
        let downloads = Torture.number("TOWLINE_KILLED_DOWNLOADS") ?? Torture.pick(4, 334)
        let lanes = downloads < 10 ? 2 : 6
        var outcomes: [Outcome] = []
        try await withThrowingTaskGroup(of: [Outcome].self) { group in
            for lane in 0..<lanes {
                group.addTask { try await Self.lane(lane, of: lanes, downloads, connections) }
            }
            for try await part in group { outcomes += part }
        }
        Self.report(outcomes, connections)
        #expect(outcomes.count == downloads)
        for outcome in outcomes {
            #expect(outcome.problem == nil)
            #expect(outcome.rework <= Int64(outcome.kills * connections) * Self.boundPerConnection)
        }
    }

    private static func report(_ outcomes: [Outcome], _ connections: Int) {
        let kills = outcomes.map(\.kills).reduce(0, +)
        let rework = outcomes.map(\.rework).reduce(0, +)
        let worst = outcomes.map(\.reworkPerKillAndConnection).max() ?? 0
        let mean = Double(rework) / Double(max(1, kills * connections))
        print(
            "random kills, -x \(connections): \(outcomes.count) downloads, \(kills) kills,",
            "\(outcomes.filter { $0.problem != nil }.count) wrong files; rework per kill and connection:",
            "mean \(Int(mean) / 1024) KiB, most \(Int(worst) / 1024) KiB")
        fflush(nil)
    }

    /// Runs some of the downloads one after another, each with a new server, which keeps the log short.
    private static func lane(_ lane: Int, of lanes: Int, _ downloads: Int, _ connections: Int) async throws -> [Outcome]
    {
        let place = try Workplace()
        var outcomes: [Outcome] = []
        for number in stride(from: lane, to: downloads, by: lanes) {
            outcomes.append(try await download(number, connections, place))
        }
        return outcomes
    }

    /// Runs one download to its end. The download is killed at least once.
    private static func download(_ number: Int, _ connections: Int, _ place: Workplace) async throws -> Outcome {
        for attempt in 0..<20 {
            let length = Int64.random(in: 2 << 20..<4 << 20) + Int64(connections) << 19
            let runTime = 0.5
            let rate = Int64(Double(length) / Double(connections) / runTime)
            let version = Version(seed: UInt64(number * 20 + attempt + 1), length: length)
            let server = try await FaultServer.start(["/file": Resource(version, rate: rate)])
            var outcome = try await run(server, place, connections, kills: Int.random(in: 1...4), within: runTime + 0.4)
            outcome.rework = server.log.bodyBytesServed("/file") - length
            outcome.problem = outcome.problem ?? place.problem("file", version)
            await server.stop()
            place.clear()
            if outcome.kills > 0 { return outcome }
        }
        return Outcome(problem: "no run lasted until its kill")
    }

    private static func run(
        _ server: FaultServer, _ place: Workplace, _ connections: Int, kills: Int, within runTime: Double
    ) async throws -> Outcome {
        var outcome = Outcome(connections: connections)
        while true {
            let tow = try ChildProcess(
                "tow", ["get", "-q", "-x", "\(connections)", "-o", place.file("file"), server.url("/file")])
            let isToDie = outcome.kills < kills
            let killer = Task {
                guard isToDie else { return }
                // The random time is the purpose of the test. No code relies on progress at this time.
                try await Task.sleep(for: .seconds(Double.random(in: 0..<runTime)))
                tow.signal(SIGKILL)
            }
            let ending = await tow.end()
            killer.cancel()
            _ = await killer.result
            guard ending.signal == SIGKILL, !ending.isLate else {
                outcome.problem = ending.isSuccess ? nil : "ended with \(ending)"
                return outcome
            }
            outcome.kills += 1
            await server.log.wait { $0.openConnections == 0 }
        }
    }
}
