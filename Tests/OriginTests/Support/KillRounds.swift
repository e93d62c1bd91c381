import FaultServer
import Foundation
import Testing

/// Starts an example program, kills it with SIGKILL at a random moment and starts it again, many times. After each
/// start, the progress that the program shows must come from the disk.
struct KillRounds {
    static let isTorture = ProcessInfo.processInfo.environment["TOWLINE_TORTURE"] != nil
    /// The number of kills; `TOWLINE_TORTURE` raises it.
    static let kills = isTorture ? 200 : 20
    /// The maximum number of bytes that are received twice for each connection that a kill ends.
    static let bound: Int64 = (256 + 16) * 1024

    let example: Example
    let arguments: [String]
    let server: FaultServer
    /// The commands that show the files; empty if the program shows them at launch.
    var opening: [String] = []
    /// The commands that add and start the downloads; they may be sent again in each round.
    let commands: [String]
    /// For a program that continues its downloads at launch: every nth launch happens while the server is stopped, so
    /// that the progress can only come from the disk. `nil` for a program that sends no request before `commands`.
    var stopsServerEvery: Int?
    /// Returns whether a line is the last one that a program prints at launch.
    let isReady: @Sendable (String) -> Bool
    /// Returns the file and its held bytes from a line about progress.
    var progress: @Sendable (String) -> (name: String, held: Int64)? = { line in
        Row(line).map { ($0.name, $0.held) }
    }

    /// Runs all rounds. The server accepts connections again at the end.
    func run() async throws {
        let seed = ProcessInfo.processInfo.environment["TOWLINE_SEED"].flatMap { UInt64($0) } ?? .random(in: 1...9999)
        print("\(example.program): \(Self.kills) kills with TOWLINE_SEED=\(seed)")
        var generator = SeededGenerator(seed: seed)
        var last: [String: Int64] = [:]
        var allowance: Int64 = 0
        for round in 0..<Self.kills {
            let isStopped = stopsServerEvery.map { round % $0 == 0 } ?? false
            let asked = server.log.requests.count
            if !isStopped { try await server.acceptConnections() }
            let run = try ExampleRun(example, arguments)
            // Some kills happen during the launch.
            let isEarly = generator.next() % 5 == 0
            if !isEarly {
                for command in opening { try run.send(command) }
                _ = try await run.line(isReady)
                let shown = newest(run)
                for (name, held) in last where held > 1 << 20 {
                    #expect(
                        shown[name].map { $0 >= held - allowance } == true,
                        "round \(round): \(name) had \(held) bytes; \(shown), allowance \(allowance)")
                }
                if stopsServerEvery == nil {
                    #expect(server.log.requests.count == asked, "round \(round): no request at launch")
                    // The request of a download that is starting could arrive later.
                    let states = run.output().compactMap { Row($0)?.state }
                    #expect(states.allSatisfy { $0 == "paused" || $0 == "finished" }, "round \(round): \(states)")
                }
            }
            if isStopped { try await server.acceptConnections() }
            for command in commands { try run.send(command) }
            try await Task.sleep(for: .milliseconds(Int64.random(in: isEarly ? 0...60 : 20...400, using: &generator)))
            await run.kill()
            last.merge(newest(run)) { $1 }
            allowance = Int64(server.log.records.mostOpenConnections) * Self.bound
            await stopServer()
        }
        try await server.acceptConnections()
    }

    /// Stops the server, and waits until it has read the requests of the killed program.
    func stopServer() async {
        await server.refuseConnections()
        await server.closeConnections(reset: true)
        await server.log.wait { $0.openConnections == 0 }
    }

    /// Returns the last progress that a program showed of each file.
    private func newest(_ run: ExampleRun) -> [String: Int64] {
        Dictionary(run.output().compactMap { progress($0) }.map { ($0.name, $0.held) }) { $1 }
    }

    /// Checks that few bytes were received twice.
    func expectLittleRework(_ versions: [String: Version]) {
        let lengths = versions.values.reduce(0) { $0 + $1.length }
        let rework = server.log.records.bodyBytesServed - lengths
        let allowed = Int64(Self.kills) * Int64(server.log.records.mostOpenConnections) * Self.bound
        // A file under 1 MiB may start again after each kill.
        let small = versions.values.reduce(0) { $0 + ($1.length < 1 << 20 ? $1.length : 0) }
        print("\(example.program): \(rework / 1024) KiB came twice, \(allowed / 1024) KiB allowed")
        #expect(rework <= allowed + Int64(Self.kills) * small)
    }
}
