import FaultServer
import Foundation
import Testing
import Towline

/// Follow-ups run in order and once each, and a failure is reported.
@Suite struct FollowUpTests {
    private static let version = Version(seed: 41, length: 300_000)

    private func program(_ site: Site, _ text: String) throws -> URL {
        let path = site.root.appendingPathComponent("program")
        try Data("#!/bin/sh\n\(text)\n".utf8).write(to: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path.path)
        return path
    }

    @Test func theyRunInOrderAfterThePublish() async throws {
        let site = try await Site([
            "/a%20file": Resource(Self.version),
            "/hook": Resource(Version(seed: 1, length: 2), behaviour: Behaviour { _ in Reply(200, text: "heard\n") }),
        ])
        let downloader = try await site.downloader()
        let log = site.root.appendingPathComponent("log")
        // The program gets each argument separately and unchanged, and the file exists when the program runs.
        let program = try program(site, "test -f \"$1\" && printf '%s|%s' \"$2\" \"$3\" > '\(log.path)'")
        let target = site.root.appendingPathComponent("moved $HOME;.bin")
        let hook = try #require(URL(string: site.server.url("/hook")))
        let download = try await downloader.add(
            try site.request("/a%20file") { request in
                request.followUps = [
                    .move(to: target),
                    .run(program: program, arguments: ["{path}", "{name}", "$(id) {url-without-secrets}"]),
                    .notify(hook),
                ]
            })
        _ = try await download.file
        let done = try await followed(download, downloader)
        #expect(done.followUp == .done)
        #expect(done.file == target)
        #expect(site.names.isEmpty)
        let mismatch = try Self.version.content.firstMismatch(inFile: target.path, length: Self.version.length)
        #expect(mismatch == nil)
        let text = try String(contentsOf: log, encoding: .utf8)
        #expect(text == "moved $HOME;.bin|$(id) \(site.server.url("/a%20file"))")
        let posts = site.server.log.requests("/hook")
        #expect(posts.count == 1)
        #expect(posts.first?.info.method == "POST")
        #expect(posts.first?.info.field("Idempotency-Key")?.contains(download.id.description) == true)
        let kinds = try await download.timeline().map(\.kind)
        #expect(kinds.filter { $0 == "follow-up" }.count == 3, "\(kinds)")
        await downloader.close()
        await site.server.stop()
    }

    @Test func aFailureIsToldAndCanBeRetried() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        var downloader = try await site.downloader()
        let flag = site.root.appendingPathComponent("flag")
        let program = try program(site, "test -e '\(flag.path)' || { echo not yet; exit 3; }")
        let download = try await downloader.add(
            try site.request("/file") { $0.followUps = [.run(program: program, arguments: [])] })
        let failed = try await followed(download, downloader)
        guard case .failed(0, let reason) = failed.followUp else {
            Issue.record("\(failed.followUp)")
            return
        }
        #expect(reason.contains("status 3") && reason.contains("not yet"))
        #expect(failed.state == .finished && site.holds("file", Self.version), "the file is kept")
        await downloader.close()

        // The failure survives a relaunch, and the follow-up is not retried automatically.
        downloader = try await site.downloader()
        let again = try #require(try await downloader.download(download.id))
        #expect(try await again.snapshot.followUp == failed.followUp)
        try Data().write(to: flag)
        try await again.retry()
        #expect(try await followed(again, downloader) { $0 == .done }.followUp == .done)
        #expect(site.server.log.requests("/file").count == 1)
        await downloader.close()
        await site.server.stop()
    }

    /// The end of the process interrupts the second run of a follow-up. The next process starts it again.
    @Test(.timeLimit(.minutes(1))) func aRetryOutlivesTheProcess() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        var downloader = try await site.downloader()
        let (first, second) = (site.root.appendingPathComponent("1"), site.root.appendingPathComponent("2"))
        let program = try program(
            site,
            "test -e '\(second.path)' && exit 0; test -e '\(first.path)' || exit 3; touch '\(first.path).on'; sleep 60")
        let download = try await downloader.add(
            try site.request("/file") { $0.followUps = [.run(program: program, arguments: [])] })
        _ = try await followed(download, downloader)
        try Data().write(to: first)
        try await download.retry()
        while !FileManager.default.fileExists(atPath: first.path + ".on") {
            try await Task.sleep(for: .milliseconds(5))
        }
        await downloader.close()
        try Data().write(to: second)
        downloader = try await site.downloader()
        let again = try #require(try await downloader.download(download.id))
        #expect(try await followed(again, downloader) { $0 == .done }.followUp == .done)
        await downloader.close()
        await site.server.stop()
    }

    @Test func whatIsThereIsNotMovedOver() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let target = site.root.appendingPathComponent("taken")
        try Data("mine".utf8).write(to: target)
        let download = try await downloader.add(try site.request("/file") { $0.followUps = [.move(to: target)] })
        let failed = try await followed(download, downloader)
        guard case .failed = failed.followUp else {
            Issue.record("\(failed.followUp)")
            return
        }
        #expect(try String(contentsOf: target, encoding: .utf8) == "mine")
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    /// Waits until the follow-ups of a finished download have ended, or until `fits` returns `true`.
    private func followed(
        _ download: Download, _ downloader: Downloader,
        until fits: @Sendable (FollowUpState) -> Bool = { state in
            if case .running = state { return false }
            return state != .none
        }
    ) async throws -> DownloadSnapshot {
        let events = downloader.events
        let now = try await download.snapshot
        if now.state == .finished, fits(now.followUp) { return now }
        for await event in events {
            guard case .changed(let snapshot) = event, snapshot.id == download.id else { continue }
            if snapshot.state == .finished, fits(snapshot.followUp) { return snapshot }
        }
        return try await download.snapshot
    }
}
