import FaultServer
import Foundation
import Testing
import TowlineEngine

@testable import Towline

/// Row 87: downloads end while the disk of the list is full.
@Suite struct UnwrittenEndTests {
    private static let version = Version(seed: 87, length: 2_000_000)

    @Test(.timeLimit(.minutes(1))) func aFinishIsWrittenDownWhenThereIsRoomAgain() async throws {
        let scene = try await Scene(["/file": Resource(Self.version)])
        await scene.registry.fill()
        let id = try await scene.add("/file")
        try await scene.wait { try await scene.center.list.snapshot(id).state == .finished }
        #expect(scene.site.holds("file", Self.version))
        #expect(try await scene.registry.download(id)?.state != .finished)
        await scene.registry.fill(false)
        try await scene.wait { try await scene.registry.download(id)?.state == .finished }
        #expect(try await scene.registry.download(id)?.heldBytes == Self.version.length)
        #expect(try await scene.registry.download(id)?.name == "file")
        await scene.end()
    }

    /// A kill could undo a finish that is not in the list yet.
    @Test(.timeLimit(.minutes(1))) func aFinishIsShownWhenItIsInTheList() async throws {
        let scene = try await Scene(["/file": Resource(Self.version)])
        await scene.registry.holdBack(.finished)
        let id = try await scene.add("/file")
        await scene.registry.somethingWasRead()
        #expect(try await scene.center.list.snapshot(id).state != .finished)
        await scene.registry.letGo()
        try await scene.wait { try await scene.center.list.snapshot(id).state == .finished }
        #expect(try await scene.registry.download(id)?.state == .finished)
        await scene.end()
    }

    /// A failed download does not start again, although the list still contains it as running.
    @Test(.timeLimit(.minutes(1))) func whatFailedIsNotBegunAgainAndAgain() async throws {
        let scene = try await Scene(["/file": Resource(Self.version, behaviour: .always(.status(404)))])
        await scene.registry.fill()
        let id = try await scene.add("/file")
        try await scene.wait { try await scene.center.list.snapshot(id).state == .failed }
        let asked = scene.site.server.log.requests.count
        // The write is retried and refused again.
        let refusals = await scene.registry.refusals
        try await scene.wait { await scene.registry.refusals > refusals + 1 }
        #expect(scene.site.server.log.requests.count == asked)
        #expect(try await scene.center.list.snapshot(id).error?.status == 404)
        await scene.registry.fill(false)
        try await scene.wait { try await scene.registry.download(id)?.state == .failed }
        await scene.end()
    }

    /// A wait begins when the list contains the wait, and ends automatically.
    @Test(.timeLimit(.minutes(1))) func whatWaitsGoesOnWhenThereIsRoomAgain() async throws {
        let scene = try await Scene(["/file": Resource(Self.version)])
        await scene.site.server.refuseConnections()
        await scene.registry.fill()
        let id = try await scene.add("/file")
        try await scene.wait { try await scene.center.list.snapshot(id).state == .waiting(.network) }
        try await scene.site.server.acceptConnections()
        await scene.registry.fill(false)
        try await scene.wait { try await scene.registry.download(id)?.state == .finished }
        #expect(scene.site.holds("file", Self.version))
        await scene.end()
    }

    /// A remove reports the full disk, and succeeds later.
    @Test(.timeLimit(.minutes(1))) func removingSaysThatItCannot() async throws {
        let scene = try await Scene(["/file": Resource(Self.version, rate: 200_000)])
        let id = try await scene.add("/file")
        try await scene.wait { try await scene.center.list.snapshot(id).heldBytes > 0 }
        await scene.registry.fill()
        let error = await #expect(throws: TowlineError.self) {
            try await scene.center.remove(id, deletingFiles: true)
        }
        #expect(error?.code == .diskFull)
        await scene.registry.fill(false)
        try await scene.center.remove(id, deletingFiles: true)
        #expect(try await scene.registry.download(id) == nil)
        #expect(scene.site.names.isEmpty)
        await scene.end()
    }

    /// Notes that could not be written while the download ran are written with the next change.
    @Test(.timeLimit(.minutes(1))) func notesOutliveAFullDisk() async throws {
        let scene = try await Scene([
            "/file": Resource(
                Self.version, behaviour: .first(1, .always(.shortBody(after: 800_000)), then: .always(.status(503))))
        ])
        await scene.registry.fill()
        let id = try await scene.add("/file")
        try await scene.wait { scene.site.server.log.requests.count > 1 }
        try await scene.wait { await scene.registry.refusals > 2 }
        await scene.registry.fill(false)
        try await scene.center.pause(id)
        try await scene.wait { try await scene.registry.download(id)?.state == .paused }
        #expect(try await scene.registry.download(id)?.name == "file")
        #expect(try await scene.registry.timeline(of: id, after: 0, limit: 100).contains { $0.kind == "retrying" })
        await scene.end()
    }

    /// The downloader closes while the list cannot be written. The next launch finds the file and sends no request.
    @Test(.timeLimit(.minutes(1))) func closingDoesNotWait() async throws {
        let scene = try await Scene(["/file": Resource(Self.version)])
        await scene.registry.fill()
        let id = try await scene.add("/file")
        try await scene.wait { try await scene.center.list.snapshot(id).state == .finished }
        await scene.center.close()
        let asked = scene.site.server.log.requests.count
        let downloader = try await scene.site.downloader()
        let file = try await #require(downloader.download(id)).file
        #expect(file.lastPathComponent == "file")
        #expect(scene.site.server.log.requests.count == asked)
        await downloader.close()
        await scene.site.server.stop()
    }
}
