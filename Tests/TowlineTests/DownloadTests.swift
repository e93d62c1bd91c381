import FaultServer
import Foundation
import Testing
import Towline

/// Tests of the handle of a download.
@Suite struct DownloadTests {
    private static let version = Version(seed: 3, length: 3_000_000)

    @Test func aFileArrivesWithProgress() async throws {
        let site = try await Site(["/file.bin": Resource(Self.version)], rate: 3_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file.bin") { $0.metadata = ["row": "7"] })
        var seen: [DownloadSnapshot] = []
        for await snapshot in await download.snapshots {
            seen.append(snapshot)
            if snapshot.isOver { break }
        }
        #expect(seen.last?.state == .finished)
        #expect(seen.last?.fractionCompleted == 1)
        #expect(seen.contains { $0.state == .downloading && ($0.fractionCompleted ?? 0) > 0 })
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.heldBytes <= $1.heldBytes })
        #expect(seen.allSatisfy { $0.metadata == ["row": "7"] })
        #expect(try await download.file == site.downloads.appendingPathComponent("file.bin"))
        #expect(site.holds("file.bin", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    @Test func pauseKeepsEverythingAndResumeGoesOn() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 1_500_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file") { $0.connections = 2 })
        try await download.reaches { $0.heldBytes > 600_000 }
        try await download.pause()
        let paused = try await download.reaches { $0.state == .paused }
        #expect(paused.heldBytes > 600_000)
        // A second pause is not an error.
        try await download.pause()
        try await download.resume()
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        let kinds = try await download.timeline().map(\.kind)
        #expect(kinds.contains("paused") && kinds.contains("resumed") && kinds.contains("finished"), "\(kinds)")
        let served = site.server.log.bodyBytesServed("/file")
        #expect(served < Self.version.length + 400_000, "\(served)")
        await downloader.close()
        await site.server.stop()
    }

    @Test func cancelGivesEverythingUpAndRetryBeginsAgain() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.heldBytes > 200_000 }
        try await download.cancel()
        #expect(try await download.snapshot.state == .cancelled)
        #expect(site.names.isEmpty)
        await #expect(throws: TowlineError.self) { try await download.pause() }
        await #expect(throws: TowlineError.self) { try await download.resume() }
        try await download.retry()
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    /// Every snapshot of a failed download contains its error.
    @Test(.timeLimit(.minutes(1))) func anEndIsNeverShownWithoutItsReason() async throws {
        let site = try await Site([:])
        let downloader = try await site.downloader()
        for number in 0..<20 {
            let download = try await downloader.add(try site.request("/missing-\(number)"))
            var snapshot = try await download.snapshot
            while snapshot.state != .failed { snapshot = try await download.snapshot }
            #expect(snapshot.error?.code == .notFound, "\(number)")
        }
        await downloader.close()
        await site.server.stop()
    }

    /// A command takes effect even if it arrives while the scheduler reads the list.
    @Test(.timeLimit(.minutes(1))) func aCommandRightAfterABeginningIsObeyed() async throws {
        let site = try await Site(["/*": Resource(Version(seed: 2, length: 4_000_000), rate: 200_000)])
        let downloader = try await site.downloader {
            $0.maximumRunning = 50
            $0.maximumRunningPerHost = 50
        }
        let ends: [(DownloadState?, @Sendable (Download) async throws -> Void)] = [
            (.paused, { try await $0.pause() }), (.cancelled, { try await $0.cancel() }),
            (nil, { try await $0.remove(deletingFiles: true) }), (.paused, { _ in try await downloader.pauseAll() }),
        ]
        var expected: [(Download, DownloadState?)] = []
        for round in 0..<3 {
            for (number, (state, end)) in ends.enumerated() {
                let fresh = try await downloader.add(try site.request("/a\(round)-\(number)"))
                try await end(fresh)
                expected.append((fresh, state))
                let resumed = try await downloader.add(
                    try site.request("/b\(round)-\(number)") { $0.startsPaused = true })
                try await resumed.resume()
                try await end(resumed)
                expected.append((resumed, state))
            }
        }
        // No download may start after its command.
        try await Task.sleep(for: .milliseconds(500))
        for (download, state) in expected {
            let found = try? await download.snapshot.state
            #expect(found == state, "\(download.id)")
        }
        await downloader.close()
        await site.server.stop()
    }

    @Test func whatIsIllegalThrows() async throws {
        let site = try await Site(["/file": Resource(Version(seed: 1, length: 1000))])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        _ = try await download.file
        for act in [Download.pause, Download.resume, Download.cancel, Download.retry] {
            let error = await #expect(throws: TowlineError.self) { try await act(download)() }
            #expect(error?.code == .illegalTransition)
        }
        let other = try await downloader.add(try site.request("/other") { $0.startsPaused = true })
        try await download.remove()
        #expect(try await downloader.snapshots(of: [download, other]).map(\.id) == [other.id])
        try await other.remove()
        let gone = await #expect(throws: TowlineError.self) { try await download.snapshot }
        #expect(gone?.code == .unknownDownload)
        #expect(site.names == ["file"], "the file of a removed download stays")
        await downloader.close()
        let closed = await #expect(throws: TowlineError.self) { try await download.snapshot }
        #expect(closed?.code == .closed)
        await #expect(throws: TowlineError.self) { try await downloader.add(try site.request("/file")) }
        await site.server.stop()
    }

    @Test func removingWithFilesDeletesWhatIsOurs() async throws {
        let site = try await Site(
            ["/done": Resource(Version(seed: 1, length: 50_000)), "/half": Resource(Self.version)], rate: 2_000_000)
        let downloader = try await site.downloader()
        let done = try await downloader.add(try site.request("/done"))
        _ = try await done.file
        let half = try await downloader.add(try site.request("/half"))
        try await half.reaches { $0.heldBytes > 200_000 }
        try await half.remove(deletingFiles: true)
        #expect(site.names == ["done"])
        try await done.remove(deletingFiles: true)
        #expect(site.names.isEmpty)
        #expect(try await downloader.page().downloads.isEmpty)
        await downloader.close()
        await site.server.stop()
    }

    /// Removing a download with its files keeps earlier files and the bytes of another download with the same name.
    @Test func removingWithFilesLeavesWhatIsNotOurs() async throws {
        let site = try await Site(
            ["/a": Resource(Version(seed: 1, length: 50_000)), "/b": Resource(Self.version)], rate: 1_000_000)
        let downloader = try await site.downloader()
        let mine = site.downloads.appendingPathComponent("mine")
        try Data("mine".utf8).write(to: mine)
        let skipped = try await downloader.add(
            try site.request("/a") {
                $0.destination = .file(mine)
                $0.existing = .skip
            })
        try await skipped.reaches { $0.state == .finished }
        try await skipped.remove(deletingFiles: true)
        #expect(try Data(contentsOf: mine) == Data("mine".utf8))

        let place = site.downloads.appendingPathComponent("x")
        let failed = try await downloader.add(try site.request("/none") { $0.destination = .file(place) })
        try await failed.reaches { $0.state == .failed }
        let half = try await downloader.add(try site.request("/b") { $0.destination = .file(place) })
        try await half.reaches { $0.heldBytes > 200_000 }
        try await half.pause()
        try await half.reaches { $0.state == .paused }
        try await failed.remove(deletingFiles: true)
        #expect(try await half.snapshot.heldBytes > 200_000)
        await downloader.close()
        await site.server.stop()
    }

    @Test func aGroupThatChangesCountsAtOnce() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 500_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file") { $0.group = "a" })
        try await download.reaches { $0.heldBytes > 50_000 }
        try await download.setGroup("b")
        #expect(try await download.snapshot.group == "b")
        try await downloader.pauseAll(group: "a")
        try await downloader.pauseAll(group: "b")
        try await download.reaches { $0.state == .paused }
        await downloader.close()
        await site.server.stop()
    }

    @Test func aWrongChecksumFailsAndSaysSo() async throws {
        let site = try await Site(["/file": Resource(Version(seed: 1, length: 5000))])
        let downloader = try await site.downloader()
        let checksum = try Checksum(parsing: "sha256:" + String(repeating: "ab", count: 32))
        let download = try await downloader.add(try site.request("/file") { $0.checksum = checksum })
        let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
        #expect(error?.code == .checksumMismatch)
        #expect(try await download.snapshot.error?.code == .checksumMismatch)
        #expect(!site.names.contains("file"))
        await downloader.close()
        await site.server.stop()
    }

    /// The first URL does not work. The registry keeps the mirror across a relaunch.
    @Test func mirrorsOutliveARelaunch() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 6_000_000)
        let dead = try #require(URL(string: "http://127.0.0.1:9/file"))
        var downloader = try await site.downloader()
        let mirror = try #require(URL(string: site.server.url("/file")))
        let id = try await downloader.add(
            try site.request("/file") {
                $0.url = dead
                $0.mirrors = [mirror]
                $0.startsPaused = true
            }
        ).id
        await downloader.close()
        downloader = try await site.downloader()
        let download = try #require(try await downloader.download(id))
        try await download.resume()
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    @Test func requestsThatCannotWorkAreNotTakenIn() async throws {
        let site = try await Site([:])
        let downloader = try await site.downloader()
        var codes: [TowlineError.Code?] = []
        for change in [
            { $0.url = URL(fileURLWithPath: "/etc/passwd") },
            { $0.headers = [.init("X-A", "1\r\nHost: evil")] },
            { $0.connections = 0 },
            { $0.stallTimeout = .zero },
            { $0.mirrors = [URL(string: "http://me:secret@example.org/file")!] },
            { $0.followUps = [.move(to: URL(string: "https://example.org/")!)] },
        ] as [@Sendable (inout DownloadRequest) -> Void] {
            let request = try site.request("/file", change)
            codes.append(await #expect(throws: TowlineError.self) { try await downloader.add(request) }?.code)
        }
        #expect(
            codes == [
                .unusableURL, .unusableHeader, .unusableOption, .unusableOption, .unusableOption, .unusableOption,
            ])
        #expect(try await downloader.totals.counts.values.allSatisfy { $0 == 0 })
        await downloader.close()
        await site.server.stop()
    }

    @Test @MainActor func observationsComeWhereTheyAreIsolated() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 6_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        var fractions: [Double] = []
        let (ends, end) = AsyncStream.makeStream(of: Result<URL, any Error>.self)
        let watching = download.observe { @MainActor snapshot in
            MainActor.assertIsolated()
            fractions.append(snapshot.fractionCompleted ?? 0)
        }
        let waiting = download.whenOver { @MainActor result in
            MainActor.assertIsolated()
            end.yield(result)
            end.finish()
        }
        let progress = download.progress
        for await result in ends { #expect((try? result.get()) != nil) }
        _ = try await download.file
        while progress.completedUnitCount < Self.version.length { await Task.yield() }
        #expect(progress.fractionCompleted == 1)
        #expect(!fractions.isEmpty)
        withExtendedLifetime((watching, waiting)) {}
        await downloader.close()
        await site.server.stop()
    }
}
