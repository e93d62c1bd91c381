import FaultServer
import Foundation
import Testing
import TowlineEngine

@testable import Towline

/// A follow-up counts as complete only if its own result exists, not if another file has the name.
@Suite struct FollowUpResultTests {
    private static let version = Version(seed: 43, length: 300_000)
    /// An empty zip file.
    private static let archive = "PK\u{5}\u{6}" + String(repeating: "\0", count: 18)
    private let root = FileManager.default.temporaryDirectory.appendingPathComponent("towline-\(UUID().uuidString)")

    private func resource() -> Resource {
        Resource(Version(seed: 1, length: 22), behaviour: Behaviour { _ in Reply(200, text: Self.archive) })
    }

    /// Waits until the download and its follow-ups have ended.
    private func over(_ download: Download) async throws -> FollowUpState {
        while true {
            let now = try await download.snapshot
            switch (now.state, now.followUp) {
            case (.finished, .running), (.queued, _), (.connecting, _), (.downloading, _), (.verifying, _),
                (.publishing, _):
                try await Task.sleep(for: .milliseconds(5))
            default: return now.followUp
            }
        }
    }

    @Test(.timeLimit(.minutes(1))) func aDirectoryOfOthersIsNoResult() async throws {
        let site = try await Site(["/it.zip": resource()])
        let downloader = try await site.downloader()
        let out = site.root.appendingPathComponent("out")
        try FileManager.default.createDirectory(at: out, withIntermediateDirectories: true)
        let download = try await downloader.add(
            try site.request("/it.zip") {
                $0.followUps = [
                    .unpack(into: out), .run(program: URL(fileURLWithPath: "/bin/rm"), arguments: ["{path}"]),
                ]
            })
        guard case .failed(0, _) = try await over(download) else {
            Issue.record("\(try await download.snapshot.followUp)")
            return
        }
        // The contents of the directory change.
        let other = out.appendingPathComponent("other")
        try Data().write(to: other)
        try FileManager.default.removeItem(at: other)
        try await download.retry()
        let again = try await over(download)
        guard case .failed(0, let reason) = again else {
            Issue.record("\(again)")
            return
        }
        #expect(reason.contains("already exists"))
        #expect(site.names == ["it.zip"], "the only copy is kept")
        await downloader.close()
        await site.server.stop()
    }

    // MARK: After a kill

    private func file(_ name: String, _ text: String, endedAt: Int64 = 7) throws -> FinishedFile {
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        let path = root.appendingPathComponent(name)
        try Data(text.utf8).write(to: path)
        return FinishedFile(
            id: DownloadID(milliseconds: 1, random: (2, 3)), path: path.path, source: "http://localhost/\(name)",
            length: Int64(text.utf8.count), endedAt: endedAt)
    }

    @Test func whatWasUnpackedBeforeAKillIsDone() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        var file = try file("it.zip", Self.archive)
        let out = root.appendingPathComponent("out")
        let steps = LocalFollowUps()
        _ = try await steps.perform(.unpack(into: out), of: file)
        // As after a kill: the list does not contain the result of the first call.
        _ = try await steps.perform(.unpack(into: out), of: file)
        // The same download, started again, may deliver another file.
        file.endedAt += 1
        let error = await #expect(throws: TowlineError.self) {
            _ = try await steps.perform(.unpack(into: out), of: file)
        }
        #expect(error?.code == .destinationExists)
    }

    @Test func whatWasMovedBeforeAKillIsDone() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        var file = try file("file", "twelve bytes")
        let target = root.appendingPathComponent("target")
        let steps = LocalFollowUps()
        #expect(try await steps.perform(.move(to: target), of: file) == target.path)
        #expect(try await steps.perform(.move(to: target), of: file) == target.path)
        // Another file of the same length is not the result.
        file.endedAt += 1
        await #expect(throws: TowlineError.self) { try await steps.perform(.move(to: target), of: file) }
        let other = root.appendingPathComponent("other")
        try Data("twelve other".utf8).write(to: other)
        file.endedAt -= 1
        await #expect(throws: TowlineError.self) { try await steps.perform(.move(to: other), of: file) }
    }

    // MARK: Directories that are replaced meanwhile

    /// Another user who can write to a directory of the path replaces it with a link to a directory of the victim.
    @Test(.timeLimit(.minutes(1))) func aDirectoryThatIsReplacedByALinkHasNoEffect() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = [
            "-ec",
            """
            mkdir -p \(root.path)/in \(root.path)/out \(root.path)/victim; cd \(root.path)
            head -c 60000000 /dev/urandom > noise; tar cf in/it.tar noise; echo mine > victim/it.tar
            """,
        ]
        try shell.run()
        shell.waitUntilExit()
        let file = FinishedFile(
            id: DownloadID(milliseconds: 1, random: (2, 3)), path: root.path + "/in/it.tar",
            source: "http://localhost/it.tar", length: 1, endedAt: 7)
        let step = FollowUp.unpack(into: root.appendingPathComponent("out/it"), deletesArchive: true)
        async let result = LocalFollowUps().perform(step, of: file)
        while !FileManager.default.fileExists(atPath: root.path + "/out/.it.unpacking-1") { await Task.yield() }
        for name in ["in", "out"] {
            #expect(rename(root.path + "/" + name, root.path + "/old-" + name) == 0)
            #expect(symlink(root.path + "/victim", root.path + "/" + name) == 0)
        }
        _ = try await result
        func names(_ folder: String) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: root.path + "/" + folder)) ?? []
        }
        #expect(names("victim") == ["it.tar"])
        #expect(names("old-in") == [])
        #expect(names("old-out") == ["it"])
    }

    // MARK: Skipped and moved files

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func nothingFollowsOnAFileThatWasSkipped(isNamed: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let mine = site.downloads.appendingPathComponent("file")
        try Data("mine".utf8).write(to: mine)
        let target = site.root.appendingPathComponent("target")
        let download = try await downloader.add(
            try site.request("/file") { request in
                if isNamed { request.destination = .file(mine) }
                request.existing = .skip
                request.followUps = [.move(to: target)]
            })
        #expect(try await download.file == mine)
        #expect(try await over(download) == .none)
        #expect(try String(contentsOf: mine, encoding: .utf8) == "mine")
        #expect(!FileManager.default.fileExists(atPath: target.path))
        await downloader.close()
        await site.server.stop()
    }

    /// Another file with the same name appears while the download runs.
    @Test(.timeLimit(.minutes(1))) func nothingFollowsOnAFileThatCameMeanwhile() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 300_000)
        let downloader = try await site.downloader()
        let target = site.root.appendingPathComponent("target")
        let download = try await downloader.add(
            try site.request("/file") { request in
                request.existing = .skip
                request.followUps = [.move(to: target)]
            })
        try await download.reaches { $0.heldBytes > 0 }
        let mine = site.downloads.appendingPathComponent("file")
        try Data("mine".utf8).write(to: mine)
        #expect(try await over(download) == .none)
        #expect(try String(contentsOf: mine, encoding: .utf8) == "mine")
        #expect(site.names == ["file"])
        await downloader.close()
        await site.server.stop()
    }

    /// The moved file was deleted, and the download is added again.
    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func whatIsFetchedAgainIsMovedAgain(isNamed: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let library = site.root.appendingPathComponent("library")
        try FileManager.default.createDirectory(at: library, withIntermediateDirectories: true)
        let target = library.appendingPathComponent("moved")
        let request = try site.request("/file") { request in
            if isNamed { request.destination = .file(site.downloads.appendingPathComponent("file")) }
            request.followUps = [.move(to: target)]
        }
        for _ in 0..<2 {
            let download = try await downloader.add(request)
            #expect(try await over(download) == .done)
            let snapshot = try await download.snapshot
            #expect(snapshot.file == target)
            let mismatch = try Self.version.content.firstMismatch(
                inFile: target.path, length: Self.version.length)
            #expect(mismatch == nil)
            #expect(site.names.isEmpty)
            try FileManager.default.removeItem(at: target)
        }
        await downloader.close()
        await site.server.stop()
    }
}
