import Testing

@testable import TowlineCore
@testable import TowlineEngine
@testable import tow

/// Tests bars and lines, by value.
struct ProgressBarTests {
    static let plain = TerminalStyle(unicode: true, color: false)
    static let ascii = TerminalStyle(unicode: false, color: false)
    static let rich = TerminalStyle(unicode: true, color: true)

    @Test(arguments: [
        (0.0, "▕        ▏"), (1.0 / 64, "▕▏       ▏"), (0.25, "▕██      ▏"), (0.49, "▕███▉    ▏"),
        (0.999, "▕███████▉▏"), (1.0, "▕████████▏"),
    ])
    func eighthsOfACell(_ fraction: Double, _ expected: String) {
        #expect(ProgressBar.make(fraction: fraction, resumed: 0, width: 10, style: Self.plain) == expected)
    }

    @Test func whatWasThereIsInAnotherShade() {
        #expect(ProgressBar.make(fraction: 0.75, resumed: 0.5, width: 10, style: Self.plain) == "▕▒▒▒▒██  ▏")
        #expect(ProgressBar.make(fraction: 0.75, resumed: 0.5, width: 10, style: Self.ascii) == "[====##..]")
    }

    @Test func aBarIsFullWhenEverythingIsThereAndNotBefore() {
        #expect(ProgressBar.make(fraction: 0.9999, resumed: 0, width: 10, style: Self.ascii) == "[#######.]")
        #expect(ProgressBar.make(fraction: 1, resumed: 1, width: 10, style: Self.ascii) == "[========]")
    }

    @Test(arguments: [-1, 0, 0.3, 1, 7, .nan, .infinity], [plain, ascii, rich])
    func everyBarIsAsWideAsAsked(_ fraction: Double, _ style: TerminalStyle) {
        for width in 3...40 {
            for resumed in [0, 0.2, 0.9] {
                let bar = ProgressBar.make(fraction: fraction, resumed: resumed, width: width, style: style)
                #expect(cells(bar) == width)
            }
        }
    }

    @Test func aBarOfUnknownLengthWandersThereAndBack() {
        let bars = (0..<8).map { ProgressBar.wandering(step: $0, width: 8, style: Self.ascii) }
        #expect(Array(bars.prefix(5)) == ["[##....]", "[.##...]", "[..##..]", "[...##.]", "[....##]"])
        #expect(bars[5] == "[...##.]")
    }

    // MARK: Lines

    private func line(_ snapshot: TransferSnapshot, width: Int, style: TerminalStyle = plain) throws -> String {
        let url = try HTTPURL(parsing: "http://a.test/debian.iso")
        let options = DownloadOptions(url: url, target: .file(directory: ".", name: nil))
        var row = ProgressRow(number: 1, options: options, now: .zero)
        row.snapshot = snapshot
        return ProgressLine(row: row, now: .zero, style: style, nameWidth: min(10, width)).make(width: width)
    }

    private var halfway: TransferSnapshot {
        var snapshot = TransferSnapshot()
        snapshot.state = .downloading
        snapshot.name = "debian.iso"
        snapshot.completeLength = 1 << 30
        snapshot.heldBytes = 1 << 29
        snapshot.resumedBytes = 1 << 28
        snapshot.rate = 12.5 * 1024 * 1024
        snapshot.remaining = .seconds(41)
        snapshot.connections = 4
        return snapshot
    }

    @Test func everythingWhereThereIsRoom() throws {
        let text110 = try line(halfway, width: 110)
        #expect(
            text110
                == "debian.iso  ▕▒▒▒▒▒▒▒▒▒█████████▌                  ▏   50%    512.0 MiB of 1.0 GiB    12.5 MiB/s     0:41    ×4"
        )
    }

    @Test func columnsGoWhereThereIsNone() throws {
        let text60 = try line(halfway, width: 60)
        #expect(text60 == "debian.iso  ▕▒▒▒▒████▌        ▏   50%    12.5 MiB/s     0:41")
        let text46 = try line(halfway, width: 46)
        #expect(text46 == "debian.iso  ▕▒▒▒███      ▏   50%    12.5 MiB/s")
        let text30 = try line(halfway, width: 30)
        #expect(text30 == "debian.iso  ▕▒▒███     ▏   50%")
    }

    @Test(arguments: 1...130)
    func noLineIsWiderThanTheWindow(_ width: Int) throws {
        var waiting = halfway
        waiting.state = .waiting(.server)
        waiting.wait = .init(remaining: .seconds(12), reason: "server busy (503)")
        var unknown = halfway
        unknown.completeLength = nil
        unknown.remaining = nil
        var connecting = TransferSnapshot()
        connecting.state = .connecting
        for snapshot in [halfway, waiting, unknown, connecting] {
            for style in [Self.plain, Self.ascii, Self.rich] {
                #expect(cells(try line(snapshot, width: width, style: style)) <= width)
            }
        }
    }

    @Test func aWaitTellsWhyAndHowLong() throws {
        var waiting = halfway
        waiting.state = .waiting(.server)
        waiting.wait = .init(remaining: .seconds(12), reason: "server busy (503)")
        let text90 = try line(waiting, width: 90)
        #expect(text90 == "debian.iso  ▕▒▒▒████       ▏   50%  server busy (503); retrying in 12 s")
        #expect(Phrases.state(waiting, since: .milliseconds(4500)) == "server busy (503); retrying in 8 s")
        #expect(Phrases.state(waiting, since: .seconds(20)) == "server busy (503); retrying now")
    }

    @Test func namesFromServersAreHarmless() throws {
        var snapshot = halfway
        snapshot.name = "a\u{1B}]0;x\u{7}\u{202E}b"
        let text = try line(snapshot, width: 100)
        #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F || $0.value == 0x202E })
    }

    @Test(arguments: [
        (Duration.milliseconds(0), "0 s"), (.milliseconds(430), "0.4 s"), (.seconds(9), "9 s"), (.seconds(59), "59 s"),
        (.seconds(65), "1 min 05 s"), (.seconds(7205), "2 h 00 min"),
    ])
    func timesInSentences(_ duration: Duration, _ expected: String) { #expect(Phrases.time(duration) == expected) }

    @Test func aSummaryTellsWhatWasThere() {
        let completed = CompletedTransfer(
            outcome: .published(PublishedFile(path: "./debian.iso", length: 1 << 30)), receivedBytes: 3 << 28)
        #expect(
            Phrases.summary(of: completed, name: "", resumed: 1 << 28, elapsed: .seconds(64))
                == "debian.iso  downloaded 768.0 MiB in 1 min 04 s, 12.0 MiB/s (1.0 GiB in total)")
    }

    @Test(arguments: [
        (["LANG": "de_DE.UTF-8", "TERM": "xterm"], true, true), (["LANG": "C", "TERM": "xterm"], false, true),
        (["LANG": "de_DE.utf8", "LC_ALL": "POSIX", "TERM": "xterm"], false, true),
        (["LANG": "C.UTF-8", "TERM": "dumb"], false, false), (["LANG": "C.UTF-8"], false, false),
        (["LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1"], true, false),
        (["LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": ""], true, true),
    ])
    func theEnvironmentSaysWhatCanBeShown(_ environment: [String: String], _ unicode: Bool, _ color: Bool) {
        #expect(TerminalStyle(environment: environment) == TerminalStyle(unicode: unicode, color: color))
    }

    private func cells(_ text: String) -> Int { TerminalSafeText.displayWidth(TerminalBoard.withoutEscapes(text)) }
}
