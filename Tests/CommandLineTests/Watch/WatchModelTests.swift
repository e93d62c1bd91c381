import Testing
import TowlineCore
import TowlineWire

@testable import tow

/// Tests the effects of keys, answers and time on `tow watch`.
struct WatchModelTests {
    /// Returns a bench with ten rows for downloads.
    private func bench(_ count: Int) -> WatchBench {
        var bench = WatchBench(WatchBench.downloads(count))
        bench.feed(.tick)
        return bench
    }

    @Test func onlyThePageInSightIsAskedFor() {
        var bench = bench(10_000)
        #expect(bench.model.layout.rows == 10)
        #expect(bench.shown == (0..<10).map(String.init))
        #expect(!bench.model.hasAbove && bench.model.hasBelow)
        for _ in 0..<500 { bench.press(.pageDown) }
        #expect(bench.shown.first == "5000")
        bench.press(.end)
        #expect(bench.shown == (9990..<10_000).map(String.init))
        #expect(bench.selected == "9999")
        #expect(bench.model.hasAbove && !bench.model.hasBelow)
        #expect(bench.asked == 502)
        #expect(bench.longest == 10)
    }

    @Test func arrowsSelectAndTurnPagesAtTheirEnds() {
        var bench = bench(25)
        bench.press(.up)
        #expect(bench.selected == "0")
        for _ in 0..<9 { bench.press(.down) }
        #expect(bench.selected == "9")
        bench.press(.letter("j"))
        #expect(bench.selected == "10" && bench.shown.first == "10")
        bench.press(.letter("k"))
        #expect(bench.selected == "9" && bench.shown.first == "0")
        bench.press(.pageDown)
        #expect(bench.selected == "19")
        bench.press(.pageDown)
        #expect(bench.shown == (20..<25).map(String.init))
        #expect(bench.selected == "24")
        bench.press(.pageDown, .down)
        #expect(bench.selected == "24")
        bench.press(.home)
        #expect(bench.selected == "0" && bench.shown.count == 10)
    }

    @Test func fromTheEndUpwardsEverythingIsReached() {
        var bench = bench(25)
        bench.press(.end)
        var seen: [String] = []
        for _ in 0..<25 {
            seen.append(bench.selected ?? "")
            bench.press(.up)
        }
        #expect(seen == (0..<25).reversed().map(String.init))
        // At the beginning the page is full again, and counted from there.
        #expect(bench.shown == (0..<10).map(String.init))
        #expect(!bench.model.hasAbove && bench.model.hasBelow)
        for _ in 0..<30 { bench.press(.down) }
        #expect(bench.selected == "24")
    }

    @Test func theSelectionStaysWithItsDownload() {
        var bench = bench(8)
        bench.press(.down, .down, .down)
        bench.list.removeFirst(2)
        bench.feed(.tick)
        #expect(bench.selected == "3")
        bench.list.removeAll { $0.id == "3" }
        bench.feed(.tick)
        #expect(bench.selected == "4")
        bench.press(.end)
        bench.list.removeLast()
        bench.feed(.tick)
        #expect(bench.selected == "6")
        bench.list.removeAll()
        bench.feed(.tick)
        #expect(bench.selected == nil && bench.shown == [])
        #expect(bench.press(.letter("p"), .letter("x"), .down, .pageUp) == [])
    }

    @Test func whenThePageIsEmptiedTheOneBeforeIsShown() {
        var bench = bench(25)
        bench.press(.pageDown, .pageDown)
        #expect(bench.shown.first == "20")
        bench.list.removeLast(5)
        bench.feed(.tick)
        #expect(bench.shown.first == "10" && bench.selected == "19")
    }

    @Test func aTallerWindowShowsMoreAndALowerOneLess() {
        var bench = bench(25)
        bench.press(.down, .down, .down, .down)
        #expect(bench.feed(.size(width: 80, height: 23)) == [.redraw])
        #expect(bench.shown.count == 20 && bench.selected == "4")
        bench.feed(.size(width: 10, height: 1))
        #expect(bench.shown == ["0"] && bench.selected == "0")
        for _ in 0..<24 { bench.press(.down) }
        #expect(bench.selected == "24")
    }

    @Test(
        arguments: [
            (.queued, "pause"), (.connecting, "pause"), (.downloading, "pause"), (.verifying, "pause"),
            (.publishing, "pause"), (.waiting, "pause"), (.paused, "resume"), (.failed, "resume"), (.finished, nil),
            (.cancelled, nil),
        ] as [(Wire.State, String?)])
    func oneKeyPausesAndResumes(_ state: Wire.State, _ verb: String?) {
        for key in [WatchKey.letter("p"), .letter(" ")] {
            var bench = WatchBench(WatchBench.downloads(1, state))
            bench.feed(.tick)
            #expect(bench.press(key) == (verb.map { [.act($0, id: "0")] } ?? []))
            #expect((bench.model.notice == nil) == (verb != nil))
        }
    }

    @Test(
        arguments: [
            (.failed, "retry"), (.cancelled, "retry"), (.waiting, "resume"), (.paused, "resume"), (.downloading, nil),
            (.finished, nil),
        ] as [(Wire.State, String?)])
    func oneKeyTriesAgain(_ state: Wire.State, _ verb: String?) {
        var bench = WatchBench(WatchBench.downloads(1, state))
        bench.feed(.tick)
        #expect(bench.press(.letter("r")) == (verb.map { [.act($0, id: "0")] } ?? []))
    }

    @Test func nothingIsThrownAwayWithoutAYes() {
        for other in [WatchKey.letter("n"), .letter(" "), .escape, .down, .letter("q"), .letter("Y")] {
            var bench = bench(3)
            #expect(bench.press(.letter("x")) == [])
            #expect(bench.model.question == .init(deed: .remove, id: "0", name: "f0"))
            #expect(bench.press(other) == [])
            #expect(bench.model.question == nil)
            #expect(bench.selected == "0")
        }
        var bench = bench(3)
        #expect(bench.press(.letter("c"), .letter("f")) == [], "that is an answer to another question")
        #expect(bench.press(.letter("c"), .letter("y")) == [.act("cancel", id: "0")])
        #expect(bench.press(.letter("x"), .letter("y")) == [.remove(id: "0", files: false)])
        #expect(bench.press(.letter("x"), .letter("f")) == [.remove(id: "0", files: true)])
        #expect(bench.press(.letter("x"), .interrupt) == [.leave(130)])
    }

    @Test func anAnswerIsAboutTheDownloadThatWasAskedAbout() {
        var bench = bench(3)
        bench.press(.letter("x"))
        bench.list.removeFirst()
        bench.feed(.tick)
        #expect(bench.selected == "1")
        #expect(bench.press(.letter("y")) == [.remove(id: "0", files: false)])
    }

    @Test func leaving() {
        var bench = bench(1)
        #expect(bench.press(.letter("q")) == [.leave(0)])
        #expect(bench.press(.interrupt) == [.leave(130)])
        #expect(bench.press(.suspend) == [.suspend])
    }

    @Test func oneQuestionAtATime() {
        var model = WatchModel(width: 80, height: 13)
        #expect(model.handle(.tick, now: .zero) == [.ask(.beginning, limit: 10)])
        #expect(model.handle(.tick, now: .seconds(1)) == [])
        #expect(model.link == .unknown)
        _ = model.handle(.tick, now: .seconds(3))
        #expect(model.link == .silent("no response from towd yet; still waiting"))
        let page = Wire.Page(
            downloads: [], next: nil,
            totals: Wire.Totals(counts: [:], heldBytes: 0, completeLength: 0, rate: 0, running: 0))
        #expect(model.handle(.page(.success(page)), now: .seconds(4)) == [])
        #expect(model.link == .up)
        #expect(model.handle(.tick, now: .seconds(5)).count == 1)
    }

    @Test func whatWasAskedBeforeAChangeIsAskedAgain() {
        var bench = bench(3)
        let question = bench.model.handle(.tick, now: bench.now)
        #expect(question == [.ask(.beginning, limit: 10)])
        let before = bench.page(.beginning, 10)
        var paused = WatchBench.download("0", .paused)
        paused.name = "changed"
        #expect(bench.model.handle(.done(.success(paused)), now: bench.now) == [])
        #expect(bench.selected == "0" && bench.model.selected?.state == .paused)
        #expect(bench.model.handle(.page(.success(before)), now: bench.now) == question)
        #expect(bench.model.selected?.state == .paused, "the answer was of before")
    }

    @Test func itSaysWhenTheServiceGoesAndComes() {
        var bench = bench(3)
        _ = bench.model.handle(.tick, now: bench.now)
        _ = bench.model.handle(.page(.failure(.notRunning)), now: bench.now)
        #expect(bench.model.link == .down)
        #expect(bench.shown.count == 3)
        _ = bench.model.handle(.key(.letter("p")), now: bench.now)
        #expect(bench.model.notice?.isBad == true)
        bench.now = .seconds(10)
        bench.feed(.tick)
        #expect(bench.model.link == .up)
        #expect(bench.model.notice?.text == "towd is running again")
        bench.now = .seconds(15)
        bench.feed(.tick)
        #expect(bench.model.notice == nil)
    }

    @Test func aRefusalIsTold() {
        var bench = bench(25)
        bench.press(.pageDown)
        bench.feed(.done(.failure(.refused("there is no download"))))
        #expect(bench.model.notice?.text == "there is no download")
        // A page that the service does not know leads back to the first one.
        _ = bench.model.handle(.tick, now: bench.now)
        _ = bench.model.handle(.page(.failure(.refused("no such page"))), now: bench.now)
        bench.feed(.tick)
        #expect(bench.shown.first == "0")
    }
}
