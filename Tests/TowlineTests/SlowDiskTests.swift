import FaultServer
import Testing
import TowlineCore

@testable import Towline

/// The list answers while the disk of the downloads is slow, and reads each journal once.
@Suite struct SlowDiskTests {
    private static let resources = ["/file": Resource(length: 50_000_000, rate: 1_000_000)]

    @Test(.timeLimit(.minutes(1))) func aJournalIsReadOnceUntilATransferChangesIt() async throws {
        let scene = try await Scene(Self.resources)
        var ids: [DownloadID] = []
        for number in 0..<8 {
            let name = "file\(number)"
            let file = scene.site.downloads.appendingPathComponent(name)
            ids.append(
                try await scene.add("/file?\(number)") { request in
                    request.destination = .file(file)
                    request.startsPaused = number > 0
                })
        }
        try await scene.wait { try await scene.center.list.snapshot(ids[0]).heldBytes > 1_500_000 }
        try await scene.center.pause(ids[0])
        let held = try await scene.center.list.snapshot(ids[0]).heldBytes
        #expect(held > 1_500_000)
        _ = try await scene.center.list.page(DownloadQuery())
        _ = scene.files.takeReads()
        let page = try await scene.center.list.page(DownloadQuery())
        #expect(page.downloads.first { $0.id == ids[0] }?.heldBytes == held)
        #expect(scene.files.takeReads() == [])
        try await scene.center.resume(ids[0])
        try await scene.wait { try await scene.center.list.snapshot(ids[0]).heldBytes > held + 500_000 }
        try await scene.center.pause(ids[0])
        let later = try await scene.center.list.page(DownloadQuery()).downloads
        #expect(try #require(later.first { $0.id == ids[0] }?.heldBytes) > held)
        #expect(scene.files.takeReads() == [ids[0]])
        await scene.end()
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["cancel", "remove", "adopt", "content", "segments"])
    func theListAnswersWhileTheDiskDoesNot(_ call: String) async throws {
        let scene = try await Scene(Self.resources)
        let id = try await scene.add("/file") { $0.startsPaused = true }
        let other = try await scene.add("/other") { $0.startsPaused = true }
        _ = try await scene.center.list.page(DownloadQuery())
        let gate = Gate()
        scene.files.wait(for: gate)
        let center = scene.center
        let stuck = Task {
            switch call {
            case "cancel": try await center.cancel(id)
            case "remove": try await center.remove(id, deletingFiles: true)
            case "segments": _ = try await center.list.segments(id)
            case "content": _ = try? await center.list.contentSource(id, at: 0)
            default: _ = try await center.adopt(scene.site.downloads.path)
            }
        }
        while scene.files.waitingAnswers == 0 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(try await center.list.page(DownloadQuery()).downloads.count == 2)
        #expect(try await center.list.snapshot(other).state == .paused)
        gate.open()
        try await stuck.value
        await scene.end()
    }
}
