import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import Towline

/// Each follow-up runs once, even if the list cannot be written or changes meanwhile.
@Suite struct FollowUpListTests {
    private static let version = Version(seed: 44, length: 300_000)
    private static let step = FollowUp.run(program: URL(fileURLWithPath: "/bin/true"), arguments: [])

    /// Follow-ups that wait until `letGo` is called or their task is cancelled.
    private actor Steps: FollowUpPerformer {
        private let room: Int
        private(set) var calls: [FollowUp] = []
        private(set) var names: [String] = []
        private(set) var mostAtOnce = 0
        private(set) var running = 0
        private var isHeld: Bool
        private var onCall: @Sendable () async -> Void = {}

        init(room: Int = .max, isHeld: Bool = false) {
            self.room = room
            self.isHeld = isHeld
        }

        func whenCalled(_ body: @escaping @Sendable () async -> Void) { onCall = body }
        func letGo() { isHeld = false }

        func perform(_ followUp: FollowUp, of file: FinishedFile) async throws(TowlineError) -> String? {
            calls.append(followUp)
            names.append(file.path)
            running += 1
            mostAtOnce = max(mostAtOnce, running)
            defer { running -= 1 }
            await onCall()
            while isHeld {
                do { try await Task.sleep(for: .milliseconds(5)) } catch {
                    throw TowlineError(.cancelled, "cancelled")
                }
            }
            guard case .move(let target) = followUp else { return nil }
            return target.path
        }
    }

    /// The disk of the list is full when a step is complete, and has free space again later.
    @Test(.timeLimit(.minutes(1))) func aStepIsWrittenDownWhenThereIsRoomAgain() async throws {
        let steps = Steps()
        let scene = try await Scene(["/file": Resource(Self.version)], performer: steps)
        let registry = scene.registry
        await steps.whenCalled { await registry.fill() }
        let target = scene.site.root.appendingPathComponent("target")
        let id = try await scene.add("/file") { $0.followUps = [.move(to: target), Self.step] }
        for count in 1...2 {
            try await scene.wait { await steps.calls.count >= count }
            _ = await registry.takeRefusals()
            try await scene.wait { await registry.refusals > 1 }
            await registry.fill(false)
        }
        try await scene.wait { try await registry.download(id)?.reasonCode == FollowUpState.done.code }
        #expect(await steps.calls == [.move(to: target), Self.step], "each once")
        #expect(try await registry.download(id)?.directory == scene.site.root.path)
        // The mark is removed after the list contains the result.
        try await scene.wait { try await registry.values(prefix: "follow/").isEmpty }
        await scene.end()
    }

    /// The file is deleted and the download is added again while a step is running.
    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func anEarlierStepDoesNotEndALaterRun(isLate: Bool) async throws {
        let steps = Steps(isHeld: true)
        let scene = try await Scene(["/file": Resource(Self.version)], rate: 200_000, performer: steps)
        let add = { try await scene.add("/file") { $0.followUps = [Self.step] } }
        let id = try await add()
        try await scene.wait { await steps.calls.count == 1 }
        try FileManager.default.removeItem(at: scene.site.downloads.appendingPathComponent("file"))
        #expect(try await add() == id)
        try await scene.wait { try await scene.center.list.snapshot(id).heldBytes < Self.version.length }
        if isLate {
            try await scene.wait { try await scene.registry.download(id)?.state == .finished }
            await steps.letGo()
        } else {
            await steps.letGo()
            try await scene.wait { await steps.running == 0 }
            #expect(try await scene.registry.download(id)?.state != .finished)
        }
        try await scene.wait { try await scene.center.list.snapshot(id).followUp == .done }
        #expect(await steps.calls.count == 2)
        #expect(scene.site.holds("file", Self.version))
        try await scene.wait { try await scene.registry.values(prefix: "follow/").isEmpty }
        await scene.end()
    }

    /// At most four follow-ups run at once, because each may be a program or unpack gigabytes.
    @Test(.timeLimit(.minutes(1))) func fourRunAtOnce() async throws {
        let count = 12
        let steps = Steps(isHeld: true)
        let paths = (0..<count).map { "/\($0)" }
        let scene = try await Scene(
            Dictionary(uniqueKeysWithValues: paths.map { ($0, Resource(Version(seed: 1, length: 1000))) }),
            performer: steps)
        let requests = try paths.map { path in
            try scene.site.request(path) { $0.followUps = [Self.step] }
        }
        let ids = try await scene.center.add(requests)
        try await scene.wait {
            try await scene.registry.downloads(ids).count { $0.state == .finished } == count
        }
        try await scene.wait { await steps.calls.count >= 4 }
        // Leaves time for a fifth follow-up, which must not start.
        try await Task.sleep(for: .milliseconds(300))
        #expect(await steps.calls.count == 4)
        await steps.letGo()
        try await scene.wait {
            try await scene.registry.downloads(ids).count { $0.reasonCode == FollowUpState.done.code } == count
        }
        #expect(await steps.mostAtOnce == 4)
        #expect(await Set(steps.names).count == count)
        await scene.end()
    }
}
