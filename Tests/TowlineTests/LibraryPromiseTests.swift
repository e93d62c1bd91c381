import FaultServer
import Foundation
import Observation
import Testing
import TowlineEngine

@testable import Towline

/// A view model as an app writes it: the module of `@Observable` and Towline are imported together.
@Observable
@MainActor
private final class DownloadModel {
    private(set) var fraction = 0.0
    private(set) var state = DownloadState.queued
    @ObservationIgnored private var observation: DownloadObservation?

    func follow(_ download: Download) {
        observation = download.observe { @MainActor [weak self] snapshot in
            self?.fraction = snapshot.fractionCompleted ?? 0
            self?.state = snapshot.state
        }
    }
}

/// The promises of the documentation to an app.
@Suite struct LibraryPromiseTests {
    private static let version = Version(seed: 51, length: 400_000)

    @Test(.timeLimit(.minutes(1))) @MainActor func aViewModelIsObservable() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let model = DownloadModel()
        let download = try await downloader.add(try site.request("/file"))
        model.follow(download)
        _ = try await download.file
        while model.state != .finished { await Task.yield() }
        #expect(model.fraction == 1)
        await downloader.close()
        await site.server.stop()
    }

    /// Neither a queued nor an interrupted download, and no webhook, contacts a server before the app says so.
    @Test(.timeLimit(.minutes(1))) func withoutResumingNoServerIsContacted() async throws {
        let site = try await Site([
            "/slow": Resource(Self.version, rate: 100_000), "/queued": Resource(Self.version),
            "/short": Resource(Version(seed: 2, length: 10)),
            "/hook": Resource(Version(seed: 1, length: 2), behaviour: Behaviour { _ in Reply(503, text: "later\n") }),
        ])
        var downloader = try await site.downloader { $0.maximumRunning = 2 }
        let hook = try #require(URL(string: site.server.url("/hook")))
        let notified = try await downloader.add(try site.request("/short") { $0.followUps = [.notify(hook)] })
        try await notified.reaches { $0.state == .finished }
        let slow = try await downloader.add(try site.request("/slow"))
        try await slow.reaches { $0.heldBytes > 20_000 }
        try await downloader.setMaximumRunning(1)
        let queued = try await downloader.add(try site.request("/queued"))
        #expect(try await queued.snapshot.state == .queued)
        await downloader.close()

        let before = site.server.log.requests.count
        downloader = try await site.downloader { $0.resumesAtLaunch = false }
        // Long enough for a queued download, a retry and a webhook.
        try await Task.sleep(for: .milliseconds(700))
        #expect(site.server.log.requests.count == before)
        #expect(try await downloader.download(slow.id)?.snapshot.state == .paused)
        #expect(try await downloader.download(queued.id)?.snapshot.state == .paused)
        let slowRequests = site.server.log.requests("/slow").count
        try await downloader.download(queued.id)?.start()
        _ = try await downloader.download(queued.id)?.file
        #expect(site.server.log.requests("/slow").count == slowRequests)
        try await downloader.startAll()
        let again = try #require(try await downloader.download(slow.id))
        try await again.reaches { $0.state == .downloading }
        await downloader.close()
        await site.server.stop()
    }

    @Test func theFileIsReturnedWhereTheFollowUpsPutIt() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        for number in 0..<5 {
            let target = site.root.appendingPathComponent("moved-\(number)")
            let download = try await downloader.add(
                try site.request("/file?\(number)") { $0.followUps = [.move(to: target)] })
            let file = try await download.file
            #expect(file == target && FileManager.default.fileExists(atPath: file.path))
        }
        let failing = try await downloader.add(
            try site.request("/file?failing") {
                $0.followUps = [.move(to: site.root.appendingPathComponent("missing/folder"))]
            })
        let error = await #expect(throws: TowlineError.self) { _ = try await failing.file }
        #expect(error?.code == .followUpFailed)
        let file = try await failing.file(includingFollowUps: false)
        #expect(FileManager.default.fileExists(atPath: file.path))
        await downloader.close()
        await site.server.stop()
    }

    /// A tar archive with one file, without padding to a record of 20 blocks, which readers do not require.
    private static func tar(_ name: String, _ text: String) -> String {
        func field(_ value: String, _ width: Int) -> String {
            value + String(repeating: "\0", count: width - value.utf8.count)
        }
        func header(_ checksum: String) -> String {
            let size = String(text.utf8.count, radix: 8)
            let start = field(name, 100) + field("0000644", 8) + field("0000000", 8) + field("0000000", 8)
            let numbers = field(String(repeating: "0", count: 11 - size.count) + size, 12) + field("00000000000", 12)
            return field(start + numbers + checksum + "0" + field("", 100) + "ustar\0" + "00", 512)
        }
        let sum = String(header("        ").utf8.reduce(0) { $0 + Int($1) }, radix: 8)
        let checksum = String(repeating: "0", count: 6 - sum.count) + sum + "\0 "
        let padding = (512 - text.utf8.count % 512) % 512
        return header(checksum) + text + String(repeating: "\0", count: padding + 1024)
    }

    @Test func anArchiveIsUnpackedAndDeleted() async throws {
        let archive = Self.tar("a.txt", "hello")
        let site = try await Site([
            "/a.tar": Resource(Self.version, behaviour: Behaviour { _ in Reply(200, text: archive) })
        ])
        let downloader = try await site.downloader()
        let folder = site.downloads.appendingPathComponent("a", isDirectory: true)
        let request = try site.request("/a.tar") { $0.followUps = [.unpack(into: folder, deletesArchive: true)] }
        let download = try await downloader.add(request)
        #expect(try await download.file.path == folder.path)
        #expect(site.names == ["a"])
        #expect(try String(contentsOf: folder.appendingPathComponent("a.txt"), encoding: .utf8) == "hello")
        let requests = site.server.log.requests.count
        let same = try await downloader.add(request)
        #expect(same == download)
        #expect(try await same.file.path == folder.path)
        #expect(site.server.log.requests.count == requests)
        await downloader.close()
        await site.server.stop()
    }

    /// Removing a download with its files removes the unpacked directory, but no directory that only has its name.
    @Test(arguments: [false, true], [false, true])
    func anUnpackedDirectoryIsRemovedWithItsArchive(_ deletesArchive: Bool, _ isOurs: Bool) async throws {
        let archive = Self.tar("a.txt", "hello")
        let site = try await Site([
            "/a.tar": Resource(Self.version, behaviour: Behaviour { _ in Reply(200, text: archive) })
        ])
        let downloader = try await site.downloader()
        let folder = site.downloads.appendingPathComponent("a", isDirectory: true)
        let request = try site.request("/a.tar") {
            $0.followUps = [.unpack(into: folder, deletesArchive: deletesArchive)]
        }
        let download = try await downloader.add(request)
        try await download.reaches { $0.followUp == .done }
        #expect(site.names == (deletesArchive ? ["a"] : ["a", "a.tar"]))
        if !isOurs {
            try FileManager.default.removeItem(at: folder)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            try Data("mine".utf8).write(to: folder.appendingPathComponent("mine"))
        }
        try await download.remove(deletingFiles: true)
        #expect(site.names == (isOurs ? [] : ["a"]))
        await downloader.close()
        await site.server.stop()
    }

    /// A kill after the archive was deleted, and before the list contains it: the step runs again and succeeds.
    @Test func aDeletedArchiveIsNotUnpackedAgain() async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("deleted-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        let archive = root.appendingPathComponent("a.tar")
        try Data(Self.tar("a.txt", "hello").utf8).write(to: archive)
        let file = FinishedFile(
            id: DownloadID(milliseconds: 1, random: (0, 1)), path: archive.path, source: "http://a.example/a.tar",
            length: 2048, endedAt: 5)
        let step = FollowUp.unpack(into: root.appendingPathComponent("a"), deletesArchive: true)
        for _ in 0..<2 {
            let place = try await LocalFollowUps().perform(step, of: file)
            #expect(place == root.appendingPathComponent("a").path)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: root.path) == ["a"])
    }

    @Test func twoNamesForOneURLInOneDirectoryAreAnError() async throws {
        let site = try await Site([:])
        let downloader = try await site.downloader()
        func named(_ name: String) throws -> DownloadRequest {
            try site.request("/file") {
                $0.destination = .file(site.downloads.appendingPathComponent(name))
                $0.startsPaused = true
            }
        }
        let first = try await downloader.add(try named("a"))
        let again = try await downloader.add(try named("a"))
        #expect(again == first)
        let error = await #expect(throws: TowlineError.self) { try await downloader.add(try named("b")) }
        #expect(error?.code == .unusableDestination && error?.message.contains("with the name a") == true)
        await #expect(throws: TowlineError.self) {
            try await downloader.add(contentsOf: [try site.request("/other") { $0.startsPaused = true }, named("c")])
        }
        #expect(try await downloader.page().downloads.count == 1, "all or none")
        let nameless = try site.request("/third") { $0.startsPaused = true }
        var other = try named("c")
        other.url = nameless.url
        await #expect(throws: TowlineError.self) { try await downloader.add(contentsOf: [nameless, other]) }
        #expect(try await downloader.page().downloads.count == 1, "all or none")
        await downloader.close()
        await site.server.stop()
    }

    /// The names are checked in the transaction that adds the download: of several names at once, one wins.
    @Test func namesThatAreAddedAtOnceAreCheckedTogether() async throws {
        let site = try await Site([:])
        let downloader = try await site.downloader()
        let added = try await withThrowingTaskGroup(of: String?.self) { group in
            for number in 0..<20 {
                let request = try site.request("/file") {
                    $0.destination = .file(site.downloads.appendingPathComponent("name\(number)"))
                    $0.startsPaused = true
                }
                group.addTask {
                    do throws(TowlineError) {
                        return try await downloader.add(request).snapshot.name
                    } catch {
                        #expect(error.code == .unusableDestination)
                        return nil
                    }
                }
            }
            return try await group.reduce(into: [String?]()) { if let name = $1 { $0.append(name) } }
        }
        #expect(try await downloader.page().downloads.map(\.name) == added && added.count == 1, "\(added)")
        await downloader.close()
        await site.server.stop()
    }

    /// A `Progress` that was released keeps nothing open: the state directory can be opened again.
    @Test(.timeLimit(.minutes(1))) func aReleasedProgressKeepsNothingOpen() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        func use() async throws {
            let download = try await site.downloader().add(try site.request("/file"))
            _ = download.progress
            _ = try await download.file
        }
        try await use()
        while true {
            if let downloader = try? await site.downloader() {
                await downloader.close()
                break
            }
            try await Task.sleep(for: .milliseconds(10))
        }
        await site.server.stop()
    }

    @Test(.timeLimit(.minutes(1))) func snapshotsGoOnAfterAFailure() async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .first(2, .status(404)))])
        let downloader = try await site.downloader()
        // The range is refused, and the request without it.
        let download = try await downloader.add(try site.request("/file") { $0.startsPaused = true })
        let states = Task {
            var seen: [DownloadState] = []
            for await snapshot in await download.snapshots where seen.last != snapshot.state {
                seen.append(snapshot.state)
                if snapshot.state == .failed { try await download.start() }
                if snapshot.state == .finished { break }
            }
            return seen
        }
        try await download.start()
        let seen = try await states.value
        #expect(seen.contains(.failed) && seen.last == .finished, "\(seen)")
        // Start has no effect on a finished download.
        try await download.start()
        #expect(try await download.snapshot.state == .finished)
        await downloader.close()
        await site.server.stop()
    }

    @Test func aCancelledTaskIsNotACancelledDownload() async throws {
        let site = try await Site(["/file": Resource(Self.version, rate: 50_000)])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        let waiting = Task { try await download.file }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(try await download.snapshot.isOver == false)
        await downloader.close()
        await site.server.stop()
    }

    @Test func nothingPrintedShowsASecret() async throws {
        let url = try #require(URL(string: "https://me:pass1@example.org/f?X-Amz-Signature=secret2"))
        var request = DownloadRequest(from: url, to: .directory(URL(fileURLWithPath: "/tmp")))
        request.headers = [.init("Authorization", "Bearer secret3")]
        request.cookies = "example.org\tFALSE\t/\tFALSE\t0\tname\tsecret5"
        (request.user, request.proxy) = ("me:secret4", "http://me:secret6@proxy")
        request.mirrors = [try #require(URL(string: "https://mirror.example/f?X-Amz-Signature=secret9"))]
        let hook = try #require(URL(string: "https://example.org/secret7"))
        request.followUps = [
            .notify(hook), .run(program: URL(fileURLWithPath: "/bin/true"), arguments: ["secret8"]),
        ]
        let link = RenewedLink(url: url, headers: request.headers)
        let site = try await Site([:])
        let downloader = try await site.downloader()
        request.startsPaused = true
        let download = try await downloader.add(request)
        for value: Any in [request, [request], link, request.headers, request.followUps, download, downloader] {
            var dumped = ""
            dump(value, to: &dumped)
            let text = "\(value) \(String(reflecting: value)) \(dumped)"
            #expect(!text.contains("secret") && !text.contains("pass1"), "\(text)")
        }
        await downloader.close()
        await site.server.stop()
    }

    @Test func anErrorHasTextsForAnAlert() {
        let error: any Error = TowlineError(.transient, "https://a: no such host", networkFailure: .hostNotFound)
        #expect(error.localizedDescription == "https://a: no such host")
        let localized = error as? any LocalizedError
        #expect(localized?.failureReason == "The network or the server failed.")
        #expect(localized?.recoverySuggestion == "Check the address and the network connection.")
    }

    @Test(.timeLimit(.minutes(1))) func observersRunOnADispatchQueue() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        let queue = DispatchQueue(label: "ui")
        let (ends, end) = AsyncStream.makeStream(of: Result<URL, any Error>.self)
        let watching = download.observe(on: queue) { _ in dispatchPrecondition(condition: .onQueue(queue)) }
        let waiting = download.whenOver(on: queue) { result in
            dispatchPrecondition(condition: .onQueue(queue))
            end.yield(result)
            end.finish()
        }
        for await result in ends { #expect(throws: Never.self) { try result.get() } }
        withExtendedLifetime((watching, waiting)) {}
        await downloader.close()
        await site.server.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aProgressFollowsPauseAndStart() async throws {
        let site = try await Site(["/file": Resource(Self.version, rate: 200_000)])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        let progress = download.progress
        try await download.reaches { $0.heldBytes > 10_000 }
        try await download.pause()
        while !progress.isPaused { await Task.yield() }
        try await download.start()
        while progress.isPaused { await Task.yield() }
        #expect(try await download.snapshot.state != .paused)
        // The changes of the `Progress` itself are no commands: a cancelled download stays cancelled.
        try await download.pause()
        while !progress.isPaused { await Task.yield() }
        try await download.cancel()
        while !progress.isCancelled { await Task.yield() }
        try await Task.sleep(for: .milliseconds(200))
        #expect(try await download.snapshot.state == .cancelled)
        await downloader.close()
        await site.server.stop()
    }

    @Test func aHandleKeepsItsDownloaderOpen() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        let download = try await site.downloader().add(try site.request("/file"))
        #expect(FileManager.default.fileExists(atPath: try await download.file.path))
        await site.server.stop()
    }

    @Test func theSequenceOfDownloadsHasNoEndAtAPage() async throws {
        let site = try await Site([:])
        let downloader = try await site.downloader()
        try await downloader.add(
            contentsOf: (0..<250).map { number in try site.request("/f\(number)") { $0.startsPaused = true } })
        var seen: Set<DownloadID> = []
        for try await snapshot in downloader.downloads() { seen.insert(snapshot.id) }
        #expect(seen.count == 250)
        await downloader.close()
        await site.server.stop()
    }

    @Test func lookingForADownloadChangesNothing() async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .always(.status(404)))])
        let downloader = try await site.downloader()
        let request = try site.request("/file")
        #expect(try await downloader.find(request) == nil)
        let download = try await downloader.add(request)
        await #expect(throws: TowlineError.self) { _ = try await download.file }
        #expect(try await downloader.find(request) == download)
        #expect(try await download.snapshot.error?.code == .notFound)
        await downloader.close()
        await site.server.stop()
    }
}
