import Testing
import TowlineCore
import TowlineWire

@testable import tow

/// Tests the lines that `tow watch` draws.
struct WatchScreenTests {
    private static let colored = TerminalStyle(unicode: true, color: true)

    private func lines(_ bench: WatchBench, _ style: TerminalStyle = ProgressBarTests.ascii) -> [String] {
        WatchScreen(model: bench.model, style: style, isFiltered: false, now: bench.now).lines()
    }

    private func bench(_ list: [Wire.Download], width: Int = 100, height: Int = 13) -> WatchBench {
        var bench = WatchBench(list, width: width, height: height)
        bench.feed(.tick)
        return bench
    }

    private static func trimmed(_ line: String) -> String {
        var line = line
        while line.last == " " { line.removeLast() }
        return line
    }

    @Test func aRowForEachDownloadSumsAboveAndKeysBelow() {
        var second = WatchBench.download("1", .waiting)
        second.reason = "the server asks for patience"
        var third = WatchBench.download("2", .failed)
        third.error = Wire.Failure(code: "notFound", message: "no such file: f2", httpStatus: 404)
        var fourth = WatchBench.download("ABCDEFGHIJ", .queued)
        (fourth.name, fourth.heldBytes) = (nil, 0)
        var first = WatchBench.download("0")
        (first.rate, first.remaining, first.connections) = (100, 5, 4)
        let list = [first, second, third, fourth, WatchBench.download("4", .finished)]
        var bench = bench(list, height: 10)
        bench.press(.down)
        #expect(
            lines(bench).map(Self.trimmed) == [
                "2.0 KiB/s - 5 running - 5 in the list",
                "  f0           downloading  [=====.....]   50%         500 B of 1000 B       100 B/s     0:05    x4",
                "> f1           waiting      [=======.......]   50%  the server asks for patience - 500 B of 1000 B",
                "  f2           failed       [=======.......]   50%  no such file: f2",
                "  fABCDEFGHIJ  queued       0 B of 1000 B",
                "  f4           finished     500 B",
                "", "",
                "1  http://a.test/f1 > /d/f1",
                "q quit  p pause/resume  c cancel  r retry  x remove  arrows, PgUp/PgDn select",
            ])
    }

    /// Tries every size of a window, with the longest values.
    @Test func itFitsEveryWindow() {
        var wide = WatchBench.download("1", .waiting)
        wide.name = "下载的文件名很长很长很长很长很长很长很长.iso"
        wide.reason = String(repeating: "because ", count: 30)
        var hostile = WatchBench.download("2", .failed)
        hostile.name = "a\u{1B}[2J\u{202E}fdp.exe\n\u{9B}31m"
        hostile.url = "http://a.test/\u{1B}]0;title\u{7}"
        hostile.error = Wire.Failure(code: "x", message: "evil\r\n\u{1B}[H", httpStatus: nil)
        var huge = WatchBench.download("3")
        (huge.completeLength, huge.heldBytes, huge.rate, huge.remaining) = (.max, .max / 2, .max, .max / 4)
        let list = [WatchBench.download("0"), wide, hostile, huge] + WatchBench.downloads(40, .paused)
        for style in [ProgressBarTests.ascii, Self.colored] {
            for (width, height) in [(1, 1), (2, 2), (5, 3), (9, 4), (20, 5), (33, 6), (61, 7), (80, 24), (250, 60)] {
                var bench = bench(list, width: width, height: height)
                for keys in [[], [WatchKey.down], [.down, .letter("x")], [.letter("n"), .down, .letter("p")]] {
                    for key in keys { bench.press(key) }
                    let lines = lines(bench, style)
                    #expect(lines.count == height)
                    for line in lines {
                        let plain = TerminalBoard.withoutEscapes(line)
                        #expect(TerminalSafeText.displayWidth(plain) <= max(1, width - 1), "\(width): \(plain)")
                        #expect(plain == TerminalSafeText.make(plain), "\(width): \(plain)")
                    }
                }
            }
        }
    }

    @Test func aFrameFillsTheWindowWithoutScrolling() {
        let frame = WatchScreen(
            model: bench(WatchBench.downloads(40), width: 60, height: 8).model, style: ProgressBarTests.ascii,
            isFiltered: false, now: .zero
        ).frame()
        #expect(frame.hasPrefix("\u{1B}[H"))
        #expect(frame.split(separator: "\r\n", omittingEmptySubsequences: false).count == 8)
        #expect(!frame.hasSuffix("\n"))
    }

    @Test func aQuestionIsSeenInEveryWindow() {
        for height in 1...10 {
            var bench = bench(WatchBench.downloads(40), width: 100, height: height)
            bench.press(.letter("x"))
            #expect(lines(bench).contains("Remove f0 from the list?  y: yes; f: also delete its files; other keys: no"))
        }
        // The name is shortened, not the answers.
        var long = WatchBench.download("0")
        long.name = String(repeating: "n", count: 300)
        var bench = bench([long])
        bench.press(.letter("c"))
        #expect(lines(bench).last?.hasSuffix("? Its downloaded data is deleted.  y: yes; other keys: no") ?? false)
    }

    @Test func itSaysThatTheServiceIsGone() {
        var bench = bench(WatchBench.downloads(1))
        _ = bench.model.handle(.tick, now: .zero)
        _ = bench.model.handle(.page(.failure(.notRunning)), now: .zero)
        let shown = lines(bench)
        #expect(shown[0] == "towd is not running. Waiting for it to start; 'tow add URL' starts it.")
        #expect(shown[1].hasPrefix("> f0  stopped      ["))
        #expect(!shown[1].contains("/s"))
    }

    @Test func anEmptyListSaysHowToFillIt() {
        var bench = bench([])
        #expect(lines(bench)[1] == "The list of downloads is empty. 'tow add URL' adds a download.")
        let filtered = WatchScreen(
            model: bench.model, style: ProgressBarTests.ascii, isFiltered: true, now: .zero
        ).lines()
        #expect(filtered[1] == "No downloads match the filter.")
        bench.model = WatchModel(width: 80, height: 10)
        #expect(lines(bench)[0] == "Connecting to towd …")
    }

    @Test func moreAboveAndBelowIsTold() {
        var bench = bench(WatchBench.downloads(40), height: 13)
        #expect(lines(bench).last?.hasPrefix("more below - q quit") ?? false)
        bench.press(.pageDown)
        #expect(lines(bench).last?.hasPrefix("more above and below - ") ?? false)
        bench.press(.end)
        #expect(lines(bench).last?.hasPrefix("more above - ") ?? false)
    }

    /// In a narrow window, a figure is complete or absent: "251.6" of "251.6 MiB" is another figure.
    @Test(arguments: [20, 26, 33, 40, 47, 53, 60, 66, 72, 80, 100]) func noFigureIsCut(_ width: Int) {
        let figure = /\d[\d.:]*(?: (?:B|KiB|MiB|GiB|TiB)(?:\/s)?)?(?: (?:running|queued|waiting|paused|failed|in))?%?/
        func figures(_ line: String) -> Set<String> { Set(line.matches(of: figure).map { String($0.0) }) }
        func list() -> [Wire.Download] {
            var list = Wire.State.allCases.map { WatchBench.download("a", $0) }
            for index in list.indices {
                list[index].id = "id-\(index)"
                list[index].completeLength = index % 2 == 0 ? 629_145_600 : nil
                list[index].heldBytes = 263_821_721
                if list[index].state == .downloading {
                    (list[index].rate, list[index].remaining, list[index].connections) = (11_744_051, 3333, 16)
                }
                if list[index].state == .failed {
                    list[index].error = Wire.Failure(
                        code: "diskFull", message: "needs 629.0 MiB, has 17 KiB", httpStatus: nil)
                }
                if list[index].state == .queued { list[index].reason = "limit: 12345 per host" }
                if list[index].state == .waiting { list[index].reason = "the server said 503, attempt 17 of 20" }
            }
            return list
        }
        let wide = lines(bench(list(), width: 300, height: 16))
        let narrow = lines(bench(list(), width: width, height: 16))
        for (line, whole) in zip(narrow.prefix(11), wide) {
            // A row without room for the sizes shows the percentage.
            let known = figures(whole).union(["41%"])
            #expect(figures(line).isSubset(of: known), "\(width): \(line)")
        }
        #expect(width < 40 || narrow.contains { $0.contains("41%") }, "\(narrow)")
    }
}
