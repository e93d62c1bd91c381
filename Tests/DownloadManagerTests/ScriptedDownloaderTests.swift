import Foundation
import Observation
import Testing
import Towline
import TowlineTesting

/// The tests of an app's view model, as the documentation shows them.
@MainActor @Suite(.timeLimit(.minutes(1))) struct ScriptedDownloaderTests {
    /// A view model of an app.
    @Observable @MainActor final class DownloadModel {
        private(set) var text = ""
        private let download: Download
        @ObservationIgnored private var observation: DownloadObservation?

        init(_ download: Download) {
            self.download = download
            observation = download.observe { @MainActor [weak self] snapshot in
                self?.text =
                    switch snapshot.state {
                    case .failed: snapshot.error?.failureReason ?? ""
                    case .paused: "paused"
                    default: snapshot.fractionCompleted.map { "\(Int($0 * 100)) %" } ?? "…"
                    }
            }
        }

        func pauseButtonTapped() async { try? await download.pause() }

        /// Waits until the text is as expected.
        func shows(_ expected: String) async {
            while text != expected { await Task.yield() }
        }
    }

    private func add(to downloader: ScriptedDownloader) async throws -> Download {
        let url = try #require(URL(string: "https://example.org/film.mp4"))
        return try await downloader.add(DownloadRequest(from: url, to: .directory(URL(fileURLWithPath: "/tmp"))))
    }

    @Test func aModelShowsWhatTheScriptSets() async throws {
        let downloader = ScriptedDownloader()
        let download = try await add(to: downloader)
        let model = DownloadModel(download)
        await model.shows("…")
        try downloader.change(download.id) { $0.completeLength = 1000 }
        try downloader.receive(400, of: download.id)
        await model.shows("40 %")
        try downloader.fail(download.id, with: TowlineError(.notFound, "film.mp4: not found"))
        await model.shows("The server does not have the file.")
    }

    @Test func theCommandsOfTheAppAreRecorded() async throws {
        let downloader = ScriptedDownloader()
        let download = try await add(to: downloader)
        let model = DownloadModel(download)
        await model.pauseButtonTapped()
        await model.shows("paused")
        #expect(downloader.commands.last == .perform(.pause, download.id))
        #expect(downloader.commands.count == 2)
    }

    @Test func allCallsFailWithTheErrorOfTheScript() async throws {
        let downloader = ScriptedDownloader()
        let download = try await add(to: downloader)
        let error = TowlineError(.transient, "towd does not respond")
        downloader.failure = error
        await #expect(throws: error) { try await download.pause() }
        await #expect(throws: error) { _ = try await downloader.page() }
        downloader.failure = nil
        #expect(try await download.snapshot.state == .queued)
    }

    @Test func aPreviewHasAnyState() async throws {
        let id = try #require(DownloadID("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
        var snapshot = DownloadSnapshot(id: id, source: "https://example.org/film.mp4", directory: "/tmp")
        (snapshot.state, snapshot.name) = (.waiting(.network), "film.mp4")
        let downloader = ScriptedDownloader([snapshot])
        #expect(try await Download(id: id, manager: downloader).snapshot == snapshot)
        try await Download(id: id, manager: downloader).start()
        #expect(try await downloader.snapshot(of: id).state == .queued)
    }

    @Test func theScriptCannotDeliverToAPausedDownload() async throws {
        let downloader = ScriptedDownloader()
        let download = try await add(to: downloader)
        try await download.pause()
        #expect(throws: TowlineError.self) { try downloader.receive(1, of: download.id) }
        #expect(throws: TowlineError.self) { try downloader.finish(download.id) }
        #expect(try await download.snapshot.heldBytes == 0)
        try downloader.note("paused", "by the user", of: download.id)
        #expect(try await download.timeline().map(\.message) == ["by the user"])
    }

    @Test func aStateHasTheReasonOfARealDownload() async throws {
        let downloader = ScriptedDownloader()
        let download = try await add(to: downloader)
        for wait in [DownloadState.WaitReason.network, .server, .retry, .diskSpace] {
            try downloader.change(download.id) { $0.state = .waiting(wait) }
            #expect(try await download.snapshot.reason?.isEmpty == false)
        }
        try downloader.change(download.id) { $0.state = .downloading }
        #expect(try await download.snapshot.reason == nil)
        try downloader.change(download.id) { ($0.state, $0.reason) = (.waiting(.server), "busy") }
        #expect(try await download.snapshot.reason == "busy")
        try downloader.change(download.id) { $0.state = .failed }
        let failed = try await download.snapshot
        #expect(failed.error != nil && failed.reason == failed.error?.message)
    }

    @Test(
        arguments: [
            ("https://example.org/a/film.mp4?key=1", nil, "film.mp4"), ("https://example.org/", nil, "example.org"),
            ("https://example.org/watch", "film.mp4", "film.mp4"), ("https://example.org/a%0Ab", nil, "a\\x0ab"),
        ] as [(String, String?, String)])
    func aDownloadHasANameForPeople(_ source: String, _ name: String?, _ expected: String) throws {
        let id = try #require(DownloadID("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
        var snapshot = DownloadSnapshot(id: id, source: source, directory: "/tmp")
        snapshot.name = name
        #expect(snapshot.displayName == expected)
    }

    /// Only the process that runs a download has its bytes.
    @Test func contentIsRefusedWithAReason() async throws {
        let download = try await add(to: ScriptedDownloader())
        let error = await #expect(throws: TowlineError.self) { _ = try await download.content }
        #expect(error?.code == .illegalTransition)
    }
}
