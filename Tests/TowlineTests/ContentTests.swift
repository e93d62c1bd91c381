import FaultServer
import Foundation
import Testing
import Towline

/// Tests of reading the bytes of a download while they arrive.
@Suite struct ContentTests {
    private static let version = Version(seed: 11, length: 16 << 20)

    private func read(_ content: DownloadContent, _ range: Range<Int64>? = nil) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await piece in content.bytes(in: range) { bytes += piece }
        return bytes
    }

    @Test(.timeLimit(.minutes(2)), arguments: [1, 4])
    func aPartThatIsMissingComesFirst(_ connections: Int) async throws {
        let site = try await Site(["/film.mp4": Resource(Self.version)], rate: 1_500_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/film.mp4") { $0.connections = connections })
        try await download.reaches { $0.heldBytes > 200_000 }
        let content = try await download.content
        #expect(content.completeLength == Self.version.length)
        let offset: Int64 = 12 << 20
        let range = offset..<(offset + 300_000)
        #expect(try await read(content, range) == Self.version.content.bytes(in: range))
        // The range arrives long before the rest: the complete download takes ten seconds at this rate.
        #expect(try await download.snapshot.heldBytes < Self.version.length / 2)
        let asked = site.server.log.requests("/film.mp4").compactMap { $0.info.field("Range") }
        // With several connections, another connection may reach this offset anyway.
        if connections == 1 { #expect(asked.contains { $0.hasPrefix("bytes=\(offset)-") }, "\(asked)") }
        #expect(try await read(content) == Self.version.content.bytes(in: 0..<Self.version.length))
        _ = try await download.file
        #expect(site.holds("film.mp4", Self.version))
        // Bytes that were read twice were downloaded once.
        let bound = Self.version.length + Int64(asked.count) * 400_000
        #expect(site.server.log.bodyBytesServed("/film.mp4") < bound)
        await downloader.close()
        await site.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func readingGoesOnFromTheTransferToTheFinishedFile() async throws {
        let version = Version(seed: 5, length: 3 << 20)
        let site = try await Site(["/a": Resource(version)], rate: 3_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/a"))
        var bytes: [UInt8] = []
        for try await piece in try await download.content.bytes() {
            bytes += piece
            // The reader is slow: the download ends before the reader has all bytes.
            if bytes.count == piece.count { _ = try await download.file }
        }
        #expect(bytes == version.content.bytes(in: 0..<version.length))
        let whole = try await download.content
        #expect(
            try await read(whole, (1 << 20)..<(1 << 20) + 5) == version.content.bytes(in: (1 << 20)..<(1 << 20) + 5))
        #expect(try await read(whole, (9 << 20)..<(10 << 20)).isEmpty)
        await downloader.close()
        await site.server.stop()
    }

    /// The transfer restarts, and the second transfer finishes before the reader.
    @Test(.timeLimit(.minutes(1)))
    func readingOutlivesARestart() async throws {
        let version = Version(seed: 5, length: 3 << 20)
        let site = try await Site(["/a": Resource(version)], rate: 2_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/a"))
        var bytes: [UInt8] = []
        var isLate = false
        for try await piece in try await download.content.bytes() {
            if bytes.isEmpty { try await download.setConnections(2) }
            bytes += piece
            if bytes.count > 1 << 20, !isLate {
                isLate = true
                _ = try await download.file
            }
        }
        #expect(bytes == version.content.bytes(in: 0..<version.length))
        await downloader.close()
        await site.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func aFileThatChangesIsNeverMixed() async throws {
        let next = Self.version.replaced(seed: 12)
        let site = try await Site(
            ["/a": Resource(Self.version, rate: 4_000_000, switches: [ContentSwitch(.atRequest(1), to: next)])])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/a") { $0.connections = 1 })
        try await download.reaches { $0.heldBytes > 200_000 }
        let content = try await download.content
        var bytes: [UInt8] = []
        await #expect {
            for try await piece in content.bytes() {
                bytes += piece
                guard bytes.count == piece.count else { continue }
                // The restart sends a new request, whose response shows that the file changed.
                try await download.setConnections(2)
            }
        } throws: { ($0 as? TowlineError)?.code == .changedOnServer }
        #expect(!bytes.isEmpty)
        #expect(Self.version.content.firstMismatch(in: bytes, at: 0) == nil, "all bytes are from the first file")
        _ = try await download.file
        #expect(site.holds("a", next))
        await downloader.close()
        await site.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func whatDoesNotRunGivesWhatItHas() async throws {
        let gate = Gate()
        let site = try await Site([
            "/a": Resource(Self.version, rate: 2_000_000, behaviour: .after(1, .wait(for: gate)))
        ])
        let downloader = try await site.downloader { $0.maximumRunning = 1 }
        let download = try await downloader.add(try site.request("/a") { $0.connections = 1 })
        let waiting = try await downloader.add(try site.request("/b"))
        try await download.reaches { $0.heldBytes > 1 << 20 }
        // The content of a queued download waits until the download starts.
        let patient = Task { try await waiting.content }
        try await download.pause()
        try await download.reaches { $0.state == .paused }
        await #expect(throws: TowlineError.self) { _ = try await patient.value }
        let content = try await download.content
        #expect(try await read(content, 0..<1000) == Self.version.content.bytes(in: 0..<1000))
        await #expect {
            _ = try await self.read(content)
        } throws: { ($0 as? TowlineError)?.code == .illegalTransition }
        gate.open()
        await downloader.close()
        await #expect { _ = try await download.content } throws: { ($0 as? TowlineError)?.code == .closed }
        await site.server.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func aReaderThatLeavesIsForgotten() async throws {
        let site = try await Site(["/a": Resource(Self.version)], rate: 2_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/a") { $0.connections = 1 })
        try await download.reaches { $0.heldBytes > 200_000 }
        let content = try await download.content
        let reader = Task { try await self.read(content, (14 << 20)..<(16 << 20)) }
        await site.server.log.wait { $0.requests("/a").count >= 2 }
        reader.cancel()
        await #expect { _ = try await reader.value } throws: { ($0 as? TowlineError)?.code == .cancelled }
        _ = try await download.file
        #expect(site.holds("a", Self.version))
        await downloader.close()
        await site.server.stop()
    }
}
