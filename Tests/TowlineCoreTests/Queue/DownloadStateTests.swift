import Testing
import TowlineCore

@Suite("The states of a download")
struct DownloadStateTests {
    private let all: [DownloadState] = [
        .queued, .connecting, .downloading, .verifying, .publishing, .finished, .paused, .waiting(.retry),
        .waiting(.server), .failed, .cancelled,
    ]

    @Test("the usual way, step by step")
    func way() {
        let way: [DownloadState] = [
            .queued, .connecting, .downloading, .waiting(.retry), .downloading, .verifying, .publishing, .finished,
        ]
        for (from, to) in zip(way, way.dropFirst()) { #expect(from.canMove(to: to), "\(from) → \(to)") }
    }

    @Test("what is finished or given up stays so; what has not finished can always be paused or given up")
    func ends() {
        for state in all {
            #expect(!DownloadState.finished.canMove(to: state))
            #expect(!DownloadState.cancelled.canMove(to: state))
            guard state != .finished, state != .cancelled else { continue }
            #expect(state.canMove(to: .cancelled))
            #expect(state.canMove(to: .paused))
        }
    }

    @Test("no short cut past verifying and publishing from bytes that still come")
    func noShortCuts() {
        #expect(!DownloadState.downloading.canMove(to: .finished))
        #expect(!DownloadState.downloading.canMove(to: .publishing))
        #expect(!DownloadState.paused.canMove(to: .downloading))
        #expect(!DownloadState.queued.canMove(to: .downloading))
    }
}
