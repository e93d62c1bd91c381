import Testing

@testable import tow

/// Tests the keys parsed from the bytes that terminals send.
struct WatchKeyTests {
    @Test(
        arguments: [
            ("q", [.letter("q")]), ("jk", [.letter("j"), .letter("k")]), (" ", [.letter(" ")]),
            ("\u{3}", [.interrupt]), ("\u{1A}", [.suspend]), ("\u{C}", [.redraw]), ("\u{E}\u{10}", [.down, .up]),
            ("\u{1B}[A\u{1B}[B", [.up, .down]), ("\u{1B}OA\u{1B}OB", [.up, .down]),
            ("\u{1B}[H\u{1B}[F", [.home, .end]), ("\u{1B}OH\u{1B}OF", [.home, .end]),
            ("\u{1B}[1~\u{1B}[4~\u{1B}[7~\u{1B}[8~", [.home, .end, .home, .end]),
            ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]),
            // Keys with Shift or Ctrl held.
            ("\u{1B}[1;5A\u{1B}[5;2~", [.up, .pageUp]),
            // Function keys, of xterm and of the Linux console, and unknown ones.
            ("\u{1B}[15~q", [.letter("q")]), ("\u{1B}[[Aq", [.letter("q")]), ("\u{1B}[<0;3;4Mq", [.letter("q")]),
            // Alt and a letter does not act like the letter alone.
            ("\u{1B}xq", [.letter("q")]), ("é\tq", [.letter("q")]),
        ] as [(String, [WatchKey])])
    func keysAreUnderstood(_ text: String, _ expected: [WatchKey]) {
        var whole = WatchKeyParser()
        #expect(whole.feed(text.utf8) == expected)
        #expect(!whole.isWaiting)
        // The bytes may be split anywhere by a slow line.
        var pieces = WatchKeyParser()
        #expect(text.utf8.flatMap { pieces.feed([$0]) } == expected)
        #expect(!pieces.isWaiting)
    }

    @Test func escapeAloneIsKnownAfterAWhile() {
        var parser = WatchKeyParser()
        #expect(parser.feed([0x1B]) == [])
        #expect(parser.isWaiting)
        #expect(parser.flush() == [.escape])
        #expect(parser.feed("q".utf8) == [.letter("q")])
    }

    @Test func aSequenceWithoutEndIsDropped() {
        var parser = WatchKeyParser()
        #expect(parser.feed("\u{1B}[".utf8 + Array(repeating: UInt8(ascii: "1"), count: 10_000)) == [])
        #expect(!parser.isWaiting)
        #expect(parser.feed("q".utf8) == [.letter("q")])
    }
}
