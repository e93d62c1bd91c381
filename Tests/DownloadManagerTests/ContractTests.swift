import Foundation
import Testing
import Towline

/// The contract of `DownloadManager`, which holds for each type that conforms to it.
@Suite(.timeLimit(.minutes(2))) struct ContractTests {
    private func with(_ kind: Kind, _ body: (any Bench) async throws -> Void) async throws {
        let bench = try await kind.bench()
        do {
            try await body(bench)
        } catch {
            try await bench.end()
            throw error
        }
        try await bench.end()
    }

    private func expect(_ code: TowlineError.Code, _ body: () async throws -> Void) async {
        let error = await #expect(throws: TowlineError.self) { try await body() }
        #expect(error?.code == code, "\(error as Any)")
    }

    private static let stranger = DownloadID("01ARZ3NDEKTSV4RRFFQ69G5FAV")

    // MARK: Adding and finding

    @Test(arguments: Kind.allCases) func anAddedDownloadHasASnapshot(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let request = try bench.request("slow") { request in
                (request.group, request.metadata, request.priority) = ("films", ["key": "value"], 3)
                request.startsPaused = true
            }
            let download = try await bench.manager.add(request)
            let snapshot = try await download.snapshot
            #expect(snapshot.id == download.id && snapshot.state == .paused)
            #expect(snapshot.source == bench.link("slow") && snapshot.directory == bench.downloads.path)
            #expect(snapshot.group == "films" && snapshot.metadata == ["key": "value"] && snapshot.priority == 3)
            #expect(snapshot.heldBytes == 0 && snapshot.error == nil && snapshot.endedAt == nil)
            #expect(snapshot.name == nil && snapshot.displayName == "slow")
            #expect(try await download.displayName == "slow")
            #expect(try await download.request.url == request.url)
            #expect(try await bench.manager.snapshots(of: [download]) == [snapshot])
        }
    }

    @Test(arguments: Kind.allCases) func theSameRequestIsTheSameDownload(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let request = try bench.request("slow")
            #expect(try await bench.manager.find(request) == nil)
            let download = try await bench.manager.add(request)
            #expect(try await bench.manager.add(request) == download)
            #expect(try await bench.manager.find(request) == download)
            #expect(try await bench.manager.find(try bench.request("fast")) == nil)
            #expect(try await bench.manager.download(download.id) == download)
            #expect(try await bench.manager.totals.counts.values.reduce(0, +) == 1)
        }
    }

    @Test(arguments: Kind.allCases) func anInvalidRequestAddsNothing(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let good = try bench.request("slow")
            var bad = good
            bad.url = try #require(URL(string: "ftp://127.0.0.1/file"))
            await expect(.unusableURL) { _ = try await bench.manager.add(contentsOf: [good, bad]) }
            #expect(try await bench.manager.find(good) == nil)
            #expect(try await bench.manager.add(contentsOf: []).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases) func anInvalidRequestIsNotSearchedFor(_ kind: Kind) async throws {
        try await with(kind) { bench in
            _ = try await bench.manager.add(try bench.request("slow"))
            let bad = try bench.request("slow") { $0.connections = 1000 }
            await expect(.unusableOption) { _ = try await bench.manager.find(bad) }
        }
    }

    @Test(arguments: Kind.allCases) func anUnknownIdentifierIsAnError(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let id = try #require(Self.stranger)
            #expect(try await bench.manager.download(id) == nil)
            let handle = Download(id: id, manager: bench.manager)
            let calls: [@Sendable () async throws -> Void] = [
                { _ = try await handle.snapshot }, { try await handle.pause() }, { try await handle.start() },
                { try await handle.cancel() }, { try await handle.remove() }, { try await handle.setPriority(1) },
                { _ = try await handle.request }, { _ = try await handle.timeline() },
                { _ = try await handle.segments }, { try await handle.move(before: nil) },
            ]
            for call in calls { await expect(.unknownDownload, call) }
            for await _ in await handle.snapshots { Issue.record("a snapshot of a download that does not exist") }
            #expect(try await bench.manager.snapshots(of: [handle]).isEmpty)
        }
    }

    // MARK: Progress and the end

    @Test(arguments: Kind.allCases) func theFileIsReturnedAtTheEnd(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("fast"))
            async let file = download.file
            try bench.finish(download.id)
            #expect(try await file == bench.downloads.appendingPathComponent("fast"))
            let snapshot = try await download.snapshot
            #expect(snapshot.state == .finished && snapshot.heldBytes == FileServer.fast.length)
            #expect(snapshot.completeLength == FileServer.fast.length && snapshot.endedAt != nil)
            #expect(snapshot.fractionCompleted == 1 && snapshot.connections == 0)
        }
    }

    @Test(arguments: Kind.allCases) func bytesAreInSnapshotsAndSegments(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("slow"))
            try bench.deliver(download.id)
            for await snapshot in await download.snapshots where snapshot.heldBytes > 0 {
                #expect(snapshot.state == .downloading)
                break
            }
            try await download.pause()
            let held = try await download.snapshot.heldBytes
            let written = try await download.segments.written
            #expect(held > 0 && written.map { $0.upperBound - $0.lowerBound }.reduce(0, +) == held)
            #expect(try await bench.manager.totals.heldBytes == held)
        }
    }

    @Test(arguments: Kind.allCases) func aFailureIsThrownAndReported(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("missing"))
            try bench.fail(download.id)
            await expect(.notFound) { _ = try await download.file }
            let snapshot = try await download.snapshot
            #expect(snapshot.state == .failed && snapshot.error?.code == .notFound && snapshot.error?.status == 404)
            #expect(snapshot.reason == snapshot.error?.message)
            await expect(.illegalTransition) { try await download.pause() }
            try await download.cancel()
            #expect(try await download.snapshot.state == .cancelled)
            #expect(try await download.snapshot.error == nil)
        }
    }

    // MARK: Commands

    @Test(arguments: Kind.allCases) func aPausedDownloadStarts(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("slow"))
            try await download.pause()
            #expect(try await download.snapshot.state == .paused)
            try await download.pause()
            #expect(try await download.snapshot.state == .paused)
            try await download.start()
            try await download.start()
            let state = try await download.snapshot.state
            #expect([.queued, .connecting, .downloading].contains(state), "\(state)")
        }
    }

    @Test(arguments: Kind.allCases) func aCancelledDownloadStartsAgain(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("slow"))
            try bench.deliver(download.id)
            try await download.reaches { $0.heldBytes > 0 }
            try await download.cancel()
            let snapshot = try await download.snapshot
            #expect(snapshot.state == .cancelled && snapshot.heldBytes == 0 && snapshot.endedAt != nil)
            await expect(.cancelled) { _ = try await download.file }
            await expect(.illegalTransition) { try await download.pause() }
            try await download.cancel()
            try await download.start()
            let again = try await download.snapshot
            #expect([.queued, .connecting, .downloading].contains(again.state) && again.endedAt == nil, "\(again)")
        }
    }

    @Test(arguments: Kind.allCases) func aFinishedDownloadRefusesCommands(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("fast"))
            try bench.finish(download.id)
            _ = try await download.file
            await expect(.illegalTransition) { try await download.pause() }
            await expect(.illegalTransition) { try await download.cancel() }
            try await download.start()
            #expect(try await download.snapshot.state == .finished)
        }
    }

    @Test(arguments: Kind.allCases) func theStreamEndsAtTheRemoval(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("slow"))
            var snapshots = await download.snapshots.makeAsyncIterator()
            #expect(await snapshots.next() != nil)
            try await download.remove(deletingFiles: true)
            while await snapshots.next() != nil {}
            await expect(.unknownDownload) { _ = try await download.snapshot }
            await expect(.unknownDownload) { try await download.pause() }
            await expect(.cancelled) { _ = try await download.file }
            #expect(try await bench.manager.download(download.id) == nil)
            #expect(try FileManager.default.contentsOfDirectory(atPath: bench.downloads.path).isEmpty)
        }
    }

    @Test(arguments: Kind.allCases) func aStreamContinuesAfterTheEnd(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("slow"))
            var snapshots = await download.snapshots.makeAsyncIterator()
            try await download.cancel()
            while let snapshot = await snapshots.next(), snapshot.state != .cancelled {}
            try await download.start()
            try bench.deliver(download.id)
            var last: DownloadSnapshot?
            while last?.heldBytes ?? 0 == 0, let snapshot = await snapshots.next() { last = snapshot }
            #expect(last?.state == .downloading)
        }
    }

    // MARK: Settings and lists

    @Test(arguments: Kind.allCases) func settingsAreInTheSnapshot(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let download = try await bench.manager.add(try bench.request("slow") { $0.startsPaused = true })
            try await download.setPriority(7)
            try await download.setGroup("films")
            try await download.setMetadata(["key": "value"])
            try await download.setRateLimit(1000)
            try await download.setConnections(2)
            let snapshot = try await download.snapshot
            #expect(snapshot.priority == 7 && snapshot.group == "films" && snapshot.metadata == ["key": "value"])
            #expect(try await download.request.rateLimit == 1000)
            try await download.setGroup(nil)
            try await download.setRateLimit(nil)
            #expect(try await download.snapshot.group == nil)
            #expect(try await download.request.rateLimit == nil)
            await expect(.unusableOption) { try await download.setConnections(1000) }
            let link = try #require(URL(string: bench.link("fast")))
            try await download.setLink(RenewedLink(url: link))
            #expect(try await download.snapshot.source == link.absoluteString)
        }
    }

    @Test(arguments: Kind.allCases) func pagesCoverTheList(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let requests = try (0..<5).map { number in
                try bench.request("slow") { request in
                    let file = bench.downloads.appendingPathComponent("folder\(number)/file")
                    request.destination = .file(file)
                    request.startsPaused = true
                    request.group = number < 3 ? "a" : "b"
                }
            }
            let added = try await bench.manager.add(contentsOf: requests)
            #expect(Set(added).count == 5)
            try await added[4].move(before: added[0].id)
            var query = DownloadQuery()
            query.limit = 2
            var ids: [DownloadID] = []
            for try await snapshot in bench.manager.downloads(query) { ids.append(snapshot.id) }
            #expect(ids == [added[4], added[0], added[1], added[2], added[3]].map(\.id))
            for try await snapshot in bench.manager.downloads(query) {
                try await bench.manager.download(of: snapshot).setMetadata(["row": snapshot.displayName])
            }
            #expect(try await added[3].snapshot.metadata == ["row": "file"])
            (query.group, query.descending, query.order) = ("a", true, .added)
            let page = try await bench.manager.page(query)
            #expect(page.downloads.map(\.id) == [added[2].id, added[1].id] && page.next != nil)
            query = DownloadQuery()
            query.filters = [.finished]
            #expect(try await bench.manager.page(query) == DownloadPage(downloads: []))
            #expect(try await bench.manager.totals.counts[.paused] == 5)
        }
    }

    @Test(arguments: Kind.allCases) func aGroupPausesAndStarts(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let first = try await bench.manager.add(try bench.request("slow") { $0.group = "a" })
            let second = try await bench.manager.add(try bench.request("missing") { $0.startsPaused = true })
            try await bench.manager.pauseAll(group: "a")
            #expect(try await first.snapshot.state == .paused)
            try await bench.manager.startAll(group: "a")
            #expect(try await first.snapshot.state != .paused)
            #expect(try await second.snapshot.state == .paused)
            try await bench.manager.pauseAll()
            #expect(try await first.snapshot.state == .paused)
            try await bench.manager.startAll()
            #expect(try await second.snapshot.state != .paused)
        }
    }

    /// A model that applies the events, as the documentation describes, has the list of the manager.
    @Test(arguments: Kind.allCases) func eventsDescribeTheList(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let manager = bench.manager
            let events = manager.events
            let first = try await manager.add(try bench.request("slow") { $0.startsPaused = true })
            let second = try await manager.add(try bench.request("fast") { $0.startsPaused = true })
            try await first.remove()
            try await second.setMetadata(["last": "yes"])
            var model: [DownloadID: DownloadSnapshot] = [:]
            for await event in events {
                switch event {
                case .added(let snapshot), .changed(let snapshot): model[snapshot.id] = snapshot
                case .removed(let id): model[id] = nil
                case .listChanged:
                    model = [:]
                    for try await snapshot in manager.downloads() { model[snapshot.id] = snapshot }
                case .noted, .troubled, .missed: break
                }
                if Array(model.keys) == [second.id], model[second.id]?.metadata == ["last": "yes"] { break }
            }
            #expect(Array(model.keys) == [second.id])
        }
    }

    @Test(arguments: Kind.allCases) func nothingWorksAfterClosing(_ kind: Kind) async throws {
        try await with(kind) { bench in
            let manager = bench.manager
            let download = try await manager.add(try bench.request("slow"))
            let snapshots = await download.snapshots
            let events = manager.events
            let waiter = Task { try await download.file }
            await manager.close()
            for await _ in snapshots {}
            for await _ in events {}
            await expect(.closed) { _ = try await waiter.value }
            let error = await #expect(throws: TowlineError.self) { _ = try await download.snapshot }
            #expect(error?.code == .closed && error?.recoverySuggestion != nil)
            #expect(error.map { $0.message.contains("close()") } == false, "a message is for users of the app")
            #expect(error.map { String(reflecting: $0).contains("Create a new Downloader") } == true)
            await expect(.closed) { try await download.pause() }
            await expect(.closed) { _ = try await manager.add(try bench.request("fast")) }
            await expect(.closed) { _ = try await manager.page(DownloadQuery()) }
            await expect(.closed) { _ = try await manager.totals }
            for await _ in await download.snapshots { Issue.record("a snapshot after the end") }
            await manager.close()
        }
    }
}

extension Download {
    /// Waits for a snapshot that fits.
    func reaches(_ fits: @Sendable (DownloadSnapshot) -> Bool) async throws {
        for await snapshot in await snapshots where fits(snapshot) { return }
        throw CancellationError()
    }
}
