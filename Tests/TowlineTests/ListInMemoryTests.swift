import Foundation
import Testing
import Towline
import TowlineTesting

/// A downloader whose list is in memory, as in tests and previews of an app.
@Suite(.timeLimit(.minutes(1))) struct ListInMemoryTests {
    @Test func aListInMemoryWritesNoFile() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("memory-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let network = ScriptedNetwork()
        let data = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        let downloader = try await Downloader(registry: .inMemory, transport: network.transport)
        let other = try await Downloader(registry: .inMemory, transport: network.transport)
        let requests = try (0..<3).map { number in
            let link = "https://example.org/\(number)"
            network[link] = .init(data)
            return DownloadRequest(from: try #require(URL(string: link)), to: .directory(folder))
        }
        let downloads = try await downloader.add(contentsOf: requests)
        for download in downloads { #expect(try Data(contentsOf: try await download.file) == data) }
        #expect(try await downloader.add(requests[0]) == downloads[0])
        try await downloads[1].remove()
        #expect(try await downloader.page().downloads.map(\.id) == [downloads[0].id, downloads[2].id])
        #expect(try await downloader.totals.counts[.finished] == 2)
        #expect(try await other.page().downloads.isEmpty, "each downloader has a list of its own")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["0", "1", "2"])
        await downloader.close()
        await other.close()
        await #expect(throws: TowlineError.self) { try await downloader.page() }
    }
}
