import FaultServer
import Foundation
import Testing
import Towline

/// Concurrent commands all return, and the last command takes effect.
@Suite struct CommandStormTests {
    private static let commands = 10

    @Test(.timeLimit(.minutes(2)), arguments: [1, 2, 3]) func commandsAtTheSameTime(_ seed: UInt64) async throws {
        let site = try await Site(["/*": Resource(length: 50_000_000, rate: 500_000)])
        let downloader = try await site.downloader { $0.maximumRunning = 5 }
        var downloads: [Download] = []
        for number in 0..<8 { downloads.append(try await downloader.add(try site.request("/\(number)"))) }
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 {
            await withTaskGroup { group in
                for _ in 0..<12 {
                    let (download, command) = (downloads[random.next(8)], random.next(Self.commands))
                    group.addTask { await Self.give(command, to: download, of: downloader) }
                }
            }
            guard round.isMultiple(of: 5) else { continue }
            try await downloader.pauseAll()
            for download in downloads {
                let state = try await download.snapshot.state
                #expect([.paused, .cancelled].contains(state), "seed \(seed), round \(round): \(state)")
            }
            // The server notices a closed connection a moment later.
            try await Task.sleep(for: .milliseconds(50))
            let before = site.server.log.requests.count
            // No request may be sent while all downloads are paused.
            try await Task.sleep(for: .milliseconds(100))
            #expect(site.server.log.requests.count == before, "seed \(seed), round \(round): something still runs")
        }
        await downloader.close()
        await site.server.stop()
    }

    private static func give(_ command: Int, to download: Download, of downloader: Downloader) async {
        do throws(TowlineError) {
            switch command {
            case 0, 1: try await download.pause()
            case 2, 3: try await download.resume()
            case 4: try await download.cancel()
            case 5, 6: try await download.retry()
            case 7: try await download.setConnections(2)
            case 8: try await downloader.pauseAll()
            default: try await downloader.startAll()
            }
        } catch {
            #expect(error.code == .illegalTransition, "\(error)")
        }
    }
}

/// A generator of numbers that are the same in each run.
private struct SeededGenerator {
    var seed: UInt64

    mutating func next(_ limit: Int) -> Int {
        seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((seed >> 33) % UInt64(limit))
    }
}
