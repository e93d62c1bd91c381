import FaultServer
import Logging
import Synchronization
import Testing
import Towline

/// Tests of the app's logger: it receives the steps of each download only at level `debug`.
@Suite struct LoggerTests {
    private final class Lines: Sendable {
        let list = Mutex<[(text: String, download: String?)]>([])
    }

    private struct Handler: LogHandler {
        let lines: Lines
        var logLevel: Logger.Level
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let download = event.metadata?["download"].map { "\($0)" }
            lines.list.withLock { $0.append(("\(event.message)", download)) }
        }
    }

    private func lines(_ level: Logger.Level) async throws -> (Lines, DownloadID) {
        let site = try await Site(["/data.bin": Resource(length: 2_000_000)])
        let lines = Lines()
        let downloader = try await site.downloader {
            $0.logger = Logger(label: "downloads") { _ in Handler(lines: lines, logLevel: level) }
        }
        let download = try await downloader.add(
            try site.request("/data.bin") { $0.headers = [.init("X-Key", "canary")] })
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
        return (lines, download.id)
    }

    @Test func stepsAtLevelDebug() async throws {
        let (lines, id) = try await lines(.debug)
        let all = lines.list.withLock { $0 }
        #expect(all.contains { $0.text.contains("send request 1 for bytes 0-") })
        #expect(all.contains { $0.text.contains("publish the file") })
        #expect(all.allSatisfy { $0.download == "\(id)" && !$0.text.contains("canary") })
    }

    @Test func silentAboveThat() async throws {
        let (lines, _) = try await lines(.info)
        #expect(lines.list.withLock { $0.isEmpty })
    }
}
