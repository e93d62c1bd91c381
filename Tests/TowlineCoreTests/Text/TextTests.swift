import Testing

import TowlineCore

@Suite("Text for terminals")
struct TerminalSafeTextTests {
    @Test(
        "Characters that could control a terminal are shown as escapes",
        arguments: [
            ("plain é 日本 🇩🇪", "plain é 日本 🇩🇪"), ("\u{1B}[2J", "\\x1b[2J"), ("\u{1B}]0;x\u{7}", "\\x1b]0;x\\x07"),
            ("a\r\nb", "a\\x0d\\x0ab"),
            ("\u{0}\u{7F}", "\\x00\\x7f"), ("\u{9B}31m", "\\x9b31m"), ("\u{85}", "\\x85"), ("\t", "\\x09"),
            ("a\u{202E}b", "a\\u202eb"),
            ("\u{2066}\u{2069}\u{200E}\u{200F}\u{61C}", "\\u2066\\u2069\\u200e\\u200f\\u061c"),
            ("\u{2028}\u{2029}", "\\u2028\\u2029"), ("\u{FEFF}\u{200B}", "\\ufeff\\u200b"), ("\u{E0041}", "\\u{e0041}"),
            ("👨‍👩‍👧", "👨‍👩‍👧"), ("\\x1b", "\\x1b"), ("", ""),
        ])
    func escapes(text: String, expected: String) {
        #expect(TerminalSafeText.make(text) == expected)
    }

    @Test(
        "Cut to a width",
        arguments: [
            ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("abcdef", 1, "…"), ("abcdef", 0, ""), ("abcdef", -1, ""),
            ("", 0, ""),
            ("日本語", 6, "日本語"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("日本語", 2, "…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("a\r\u{FE0F}\nbc", 6, "a\\x0d…"), ("ab\u{1B}cd", 5, "ab…"), ("ab\u{1B}cd", 7, "ab\\x1b…"),
            ("ab\u{1B}cd", 8, "ab\\x1bcd"),
        ])
    func cut(text: String, width: Int, expected: String) {
        let made = TerminalSafeText.make(text, width: width)
        #expect(made == expected)
        #expect(TerminalSafeText.displayWidth(made) <= max(0, width))
    }

    @Test(
        "Cells",
        arguments: [
            ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本", 4), ("ｱ", 1), ("Ａ", 2), ("한국", 4),
            ("\u{1112}\u{1161}\u{11AB}", 2),
            ("😀", 2), ("❤️", 2), ("❤", 1), ("👨‍👩‍👧", 2), ("🇩🇪", 2), ("…", 1), ("\u{1B}", 0), ("\u{301}", 0), ("。", 2),
            ("𠀀", 2), ("ก็", 1),
        ])
    func displayWidth(text: String, cells: Int) {
        #expect(TerminalSafeText.displayWidth(text) == cells)
    }
}

@Suite("Numbers of bytes and durations as text")
struct QuantityTextTests {
    @Test(
        "Numbers of bytes are read",
        arguments: [
            ("0", 0), ("123", 123), ("123B", 123), ("1K", 1024), ("500k", 512_000), ("10M", 10_485_760),
            ("1.5G", 1_610_612_736),
            ("1KB", 1024), ("1KiB", 1024), ("1kib", 1024), ("2T", 2_199_023_255_552), ("1P", 1 << 50), ("7E", 7 << 60),
            ("0.5K", 512), ("0.001K", 1), ("0.000000001G", 1), ("9223372036854775807", .max),
            ("7.999999999E", 9_223_372_035_701_854_303),
        ] as [(String, Int64)])
    func parse(text: String, expected: Int64) throws {
        #expect(try ByteCountText.parse(text) == expected)
    }

    @Test(
        "Refused",
        arguments: [
            "", " ", "K", "-1", "+1", "1 K", " 1", "1 ", "1.5", "1.5B", "1.", ".5K", "1.K", "1,5K", "1Ki", "1KK",
            "1KiBs", "1Z", "0x1",
            "1e3", "8E", "9223372036854775808", "9007199254740992K", "1.0000000000K", "١K", "inf",
        ])
    func refused(text: String) {
        let error = #expect(throws: TowlineError.self) { try ByteCountText.parse(text) }
        #expect(error?.code == .unusableOption)
    }

    @Test(
        "Numbers of bytes are written",
        arguments: [
            (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1_048_524, "1023.9 KiB"),
            (1_048_525, "1.0 MiB"), (1_503_238_553, "1.4 GiB"), (1 << 40, "1.0 TiB"), (1 << 50, "1.0 PiB"),
            (.max, "8.0 EiB"),
            (-1536, "-1.5 KiB"), (.min, "-8.0 EiB"),
        ] as [(Int64, String)])
    func format(count: Int64, expected: String) {
        #expect(ByteCountText.format(count) == expected)
    }

    @Test(
        "Durations",
        arguments: [
            (.zero, "0:00"), (.seconds(7), "0:07"), (.seconds(245), "4:05"), (.seconds(3599), "59:59"),
            (.seconds(3600), "1 h 00 min"),
            (.seconds(7380), "2 h 03 min"), (.seconds(86_399), "23 h 59 min"), (.seconds(86_400), "1 d 00 h"),
            (.seconds(273_600), "3 d 04 h"),
            (.milliseconds(499), "0:00"), (.milliseconds(500), "0:01"), (.seconds(-5), "0:00"),
            (.milliseconds(-700), "0:00"),
            (.seconds(Int64.max), "106751991167300 d 15 h"),
            (Duration(secondsComponent: .min, attosecondsComponent: 0), "0:00"),
        ] as [(Duration, String)])
    func duration(duration: Duration, expected: String) {
        #expect(DurationText.format(duration) == expected)
    }

    @Test(
        "Durations inside a sentence",
        arguments: [
            (.seconds(-5), "0 s"), (.zero, "0 s"), (.milliseconds(40), "0 s"), (.milliseconds(440), "0.4 s"),
            (.milliseconds(949), "0.9 s"), (.milliseconds(950), "1 s"), (.milliseconds(1499), "1 s"),
            (.seconds(30), "30 s"), (.seconds(119), "119 s"), (.seconds(120), "2 min 00 s"),
            (.seconds(3599), "59 min 59 s"), (.seconds(3600), "1 h 00 min"),
        ] as [(Duration, String)])
    func durationInSentence(duration: Duration, expected: String) {
        #expect(DurationText.inSentence(duration) == expected)
    }
}
