import Testing

@testable import TowlineCore
@testable import TowlineEngine
@testable import tow

/// Tests the lines that a user sees: frames written to a model of a terminal.
struct TerminalBoardTests {
    private func options(_ name: String) throws -> DownloadOptions {
        DownloadOptions(url: try HTTPURL(parsing: "http://a.test/\(name)"), target: .file(directory: ".", name: nil))
    }

    private func snapshot(_ held: Int64, of length: Int64 = 1000) -> TransferSnapshot {
        var snapshot = TransferSnapshot()
        snapshot.state = .downloading
        snapshot.completeLength = length
        snapshot.heldBytes = held
        return snapshot
    }

    private func finished(_ name: String) -> Result<CompletedTransfer, TowlineError> {
        .success(
            CompletedTransfer(outcome: .published(PublishedFile(path: "./\(name)", length: 1000)), receivedBytes: 1000))
    }

    @Test func barsStayBelowAndLinesScrollAwayAbove() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        var screen = ScreenModel(width: 60)
        func draw(_ milliseconds: Int, isLast: Bool = false) {
            screen.write(board.frame(width: 60, height: 24, now: .milliseconds(milliseconds), isLast: isLast))
        }
        board.started(1, try options("one"), now: .zero)
        board.started(2, try options("two"), now: .zero)
        board.progressed(1, snapshot(500), now: .zero)
        draw(0)
        #expect(screen.text.count == 3)
        #expect(screen.text[0].hasPrefix("one  [#"))
        #expect(screen.text[2] == "2 running - 0 done - 0 B/s")

        board.noticed(2, TransferNotice(.warning, .restarted, "starts over"))
        draw(125)
        #expect(screen.text.count == 4)
        #expect(screen.text[0] == "! two: starts over")

        board.ended(1, finished("one"), now: .seconds(1))
        draw(250)
        #expect(screen.text[1] == "+ one  downloaded 1000 B in 1 s, 1000 B/s")
        #expect(screen.text[2].hasPrefix("two  "))

        board.ended(2, .failure(TowlineError(.notFound, "no such file: two")), now: .seconds(1))
        draw(375, isLast: true)
        #expect(
            screen.text == [
                "! two: starts over", "+ one  downloaded 1000 B in 1 s, 1000 B/s", "x no such file: two",
            ])
    }

    @Test func moreDownloadsThanRowsAreCounted() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        for number in 1...50 { board.started(number, try options("f\(number)"), now: .zero) }
        var screen = ScreenModel(width: 80)
        screen.write(board.frame(width: 80, height: 10, now: .zero, isLast: false))
        #expect(screen.text.count == 8)
        #expect(screen.text[7] == "50 running (43 not shown) - 0 done - 0 B/s")
    }

    /// If there is no room for all downloads, the running ones are shown.
    @Test func thoseThatWaitAreLeftOutFirst() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        var waiting = TransferSnapshot()
        waiting.state = .waiting(.retry)
        waiting.wait = TransferSnapshot.Wait(remaining: .seconds(9), reason: "503")
        for number in 1...50 {
            board.started(number, try options("f\(number)"), now: .zero)
            board.progressed(number, number < 48 ? waiting : snapshot(500), now: .zero)
        }
        var screen = ScreenModel(width: 80)
        screen.write(board.frame(width: 80, height: 10, now: .zero, isLast: false))
        #expect(screen.text.map { $0.prefix(3) }.prefix(4) == ["f48", "f49", "f50", "f1 "])
        #expect(screen.text[7] == "3 running - 47 waiting (43 not shown) - 0 done - 0 B/s")
    }

    @Test func aNarrowerWindowLeavesNothingBehind() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        board.started(1, try options("one"), now: .zero)
        board.progressed(1, snapshot(500), now: .zero)
        let wide = board.frame(width: 100, height: 24, now: .zero, isLast: false)
        // The terminal has wrapped the line by now: the model shows the line as the narrow terminal would.
        var screen = ScreenModel(width: 50)
        screen.write(wide)
        screen.write(board.frame(width: 50, height: 24, now: .milliseconds(125), isLast: false))
        #expect(screen.text.count == 1)
    }

    @Test func afterAPauseOfTheProcessItBeginsAnew() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        board.started(1, try options("one"), now: .zero)
        var screen = ScreenModel(width: 80)
        screen.write(board.frame(width: 80, height: 24, now: .zero, isLast: false))
        screen.write("$ fg\n")
        screen.write(board.frame(width: 80, height: 24, now: .seconds(60), isLast: false))
        #expect(screen.text.map { $0.prefix(4) } == ["one ", "$ fg", "one "])
    }

    @Test func nothingIsWrittenWhenThereIsNothingToSay() {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        #expect(board.frame(width: 80, height: 24, now: .zero, isLast: false) == "")
        #expect(board.frame(width: 80, height: 24, now: .zero, isLast: true) == "")
    }

    @Test func anInterruptionTellsWhatIsKept() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        board.started(1, try options("one"), now: .zero)
        board.progressed(1, snapshot(512, of: 2048), now: .zero)
        board.ended(1, .failure(TowlineError(.cancelled, "interrupted")), now: .seconds(1))
        board.closed(exitStatus: 130, interrupted: true, now: .seconds(1))
        var screen = ScreenModel(width: 100)
        screen.write(board.frame(width: 100, height: 24, now: .seconds(1), isLast: true))
        let kept = "! one  interrupted; 512 B of 2.0 KiB are kept, and the next run resumes"
        #expect(screen.text == [kept, Phrases.resumeHint(goesOn: true)])
    }

    @Test func whereNothingCameNothingIsSaidToBeKept() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        board.started(1, try options("one"), now: .zero)
        board.ended(1, .failure(TowlineError(.cancelled, "interrupted")), now: .seconds(1))
        board.closed(exitStatus: 130, interrupted: true, now: .seconds(1))
        var screen = ScreenModel(width: 100)
        screen.write(board.frame(width: 100, height: 24, now: .seconds(1), isLast: true))
        let lost = "! one  interrupted before any data was received; the next run starts from the beginning"
        #expect(screen.text == [lost, Phrases.resumeHint(goesOn: false)])
    }

    @Test func messagesOfServersAreHarmless() throws {
        var board = TerminalBoard(style: ProgressBarTests.ascii)
        board.noticed(1, TransferNotice(.info, .retrying, "x\u{1B}[2Jy\rz"))
        board.ended(1, .failure(TowlineError(.transient, "a\u{9B}31mb\n")), now: .zero)
        let text = board.frame(width: 80, height: 24, now: .zero, isLast: true)
        #expect(text == "- x\\x1b[2Jy\\x0dz\u{1B}[K\nx a\\x9b31mb\\x0a\u{1B}[K\n\u{1B}[J")
    }
}
