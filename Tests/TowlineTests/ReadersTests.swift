import Foundation
import TestServers
import Testing
import Towline

/// Measures the cost of readers of snapshots. The normal run has 60 downloads. With `TOWLINE_TORTURE`, which is meant
/// for release builds, 1,000 downloads are timed in pairs, with 24 readers and without readers. The server sends
/// 100 KiB/s to each download, about 1 Gbit/s in total.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: Programs.areThere(Programs.nginx)))
struct ReadersTests {
    private static let isTorture = getenv("TOWLINE_TORTURE") != nil
    private static let count = isTorture ? 1_000 : 60
    private static let length: Int64 = 1 << 20
    private static let path = isTorture ? "steady/piece" : "piece"

    /// The CPU time and wall time of one run in seconds, and the number of delivered snapshots.
    struct Cost {
        var cpu = 0.0
        var wall = 0.0
        var told = 0
    }

    @Test func manyReadersCostLittle() async throws {
        let nginx = try await Nginx()
        try Data(count: Int(Self.length)).write(to: URL(fileURLWithPath: nginx.folder.path + "/piece"))
        var costs: [Int: [Cost]] = [:]
        for _ in 0..<(Self.isTorture ? 5 : 1) {
            for readers in [0, 24] { costs[readers, default: []].append(try await run(nginx, readers: readers)) }
        }
        for (readers, all) in costs.sorted(by: { $0.key < $1.key }) {
            for cost in all {
                print("\(readers) readers: \(cost.wall) s, \(cost.cpu) s of CPU, \(cost.told) snapshots read")
            }
        }
        guard Self.isTorture else { return }
        func median(_ readers: Int, _ value: (Cost) -> Double) -> Double {
            let values = costs[readers, default: []].map(value).sorted()
            return values[values.count / 2]
        }
        let ratio = median(24, \.wall) / median(0, \.wall)
        print("time with 24 readers / without: \(ratio); CPU: \(median(24, \.cpu) / median(0, \.cpu))")
        #expect(ratio <= 1.02)
    }

    private func run(_ nginx: Nginx, readers: Int) async throws -> Cost {
        let memory = URL(fileURLWithPath: "/dev/shm/towline-\(UUID().uuidString)")
        let folder = memory.appendingPathComponent("files")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: memory) }
        var configuration = Downloader.Configuration()
        configuration.maximumRunning = Self.count
        configuration.maximumRunningPerHost = Self.count
        let downloader = try await Downloader(
            stateDirectory: memory.appendingPathComponent("state"), configuration: configuration)
        // The readers subscribe before the first addition.
        let events = (0..<readers).map { _ in downloader.events }
        let tasks = events.map { events in Task { await Self.read(events) } }
        let requests = try (0..<Self.count).map { number in
            let url = try #require(URL(string: nginx.url("\(Self.path)?\(number)")))
            var request = DownloadRequest(from: url, to: .file(folder.appendingPathComponent("\(number)")))
            request.connections = 1
            return request
        }
        let (start, before) = (ContinuousClock.now, Self.cpu())
        for download in try await downloader.add(contentsOf: requests) { _ = try await download.file }
        var told = 0
        for task in tasks {
            let (finished, read) = await task.value
            #expect(finished == Self.count, "each reader receives the end of each download")
            told += read
        }
        let wall = (ContinuousClock.now - start) / .seconds(1)
        let cost = Cost(cpu: Self.cpu() - before, wall: wall, told: told)
        await downloader.close()
        // Start, changes of state and end are delivered at once; other snapshots are limited to 10,000 per second.
        let limit = 12.0 * Double(readers * Self.count) + 10_000 * (wall + 1)
        #expect(Double(cost.told) <= limit, "\(cost.told) in \(wall) s")
        return cost
    }

    /// Reads events until all downloads are finished. Returns the numbers of finished downloads and of changes read.
    private static func read(_ events: DownloadEvents) async -> (finished: Int, read: Int) {
        var finished: Set<DownloadID> = []
        var read = 0
        for await event in events {
            guard case .changed(let snapshot) = event else { continue }
            read += 1
            if snapshot.state == .finished { finished.insert(snapshot.id) }
            if finished.count == count { break }
        }
        return (finished.count, read)
    }

    private static func cpu() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }
}
