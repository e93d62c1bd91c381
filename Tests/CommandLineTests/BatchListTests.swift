import Testing

@testable import tow

/// Tests the parsing of lists of URLs, by value.
struct BatchListTests {
    private func entries(_ text: String) -> [BatchEntry] {
        var splitter = BatchLineSplitter()
        var parser = BatchListParser()
        var bytes = Array(text.utf8)[...]
        var entries: [BatchEntry] = []
        while let line = splitter.take(from: &bytes) {
            if let entry = parser.take(line) { entries.append(entry) }
        }
        if let line = splitter.finish(), let entry = parser.take(line) { entries.append(entry) }
        if let entry = parser.finish() { entries.append(entry) }
        return entries
    }

    @Test func aURLALine() {
        #expect(
            entries("http://a/1\nhttp://a/2\n")
                == [BatchEntry(url: "http://a/1", number: 1), BatchEntry(url: "http://a/2", number: 2)])
    }

    @Test func theLastLineNeedsNoEnd() { #expect(entries("http://a/1").map(\.url) == ["http://a/1"]) }

    @Test func nothingComesOfNothing() {
        #expect(entries("") == [])
        #expect(entries("\n\n  \n# note\n   # indented note\n") == [])
    }

    @Test func commentsAndBlankLinesCountForNothing() {
        let found = entries("# first\n\nhttp://a/1\n\n# between\n  output=x\nhttp://a/2#fragment\n")
        #expect(found.map(\.url) == ["http://a/1", "http://a/2#fragment"])
        #expect(found[0].options == [.init(name: "output", value: "x", number: 6)])
    }

    @Test(arguments: [
        ("  output=a b", "output", "a b"), ("\toutput a b", "output", "a b"), ("  output = a", "output", "a"),
        ("  --output=a", "output", "a"), ("  header=X: y=z", "header", "X: y=z"), ("  insecure", "insecure", ""),
        ("  header Authorization: Bearer a=b", "header", "Authorization: Bearer a=b"),
    ])
    func optionsBelowAURL(_ line: String, _ name: String, _ value: String) {
        let found = entries("http://a/1\n\(line)\n")
        #expect(
            found == [BatchEntry(url: "http://a/1", number: 1, options: [.init(name: name, value: value, number: 2)])])
    }

    @Test func endsOfLinesFromWindowsAndAByteOrderMark() {
        #expect(
            entries("\u{FEFF}http://a/1\r\n  output=x\r\nhttp://a/2\r\n").map(\.url) == ["http://a/1", "http://a/2"])
        #expect(entries("http://a/1\r\n  output=x\r\n")[0].options[0].value == "x")
    }

    /// A list in UTF-16 that arrives in pieces of any size, with a character of two units.
    @Test(arguments: [true, false], [1, 2, 3, 7, 1000]) func sixteenBitUnits(_ isBigEndian: Bool, _ size: Int) {
        let text = "\u{FEFF}http://a/ü\r\n  output=😀.bin"
        let bytes = text.utf16.flatMap { unit in
            let pair = [UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit)]
            return isBigEndian ? pair : pair.reversed()
        }
        var decoder = UnicodeDecoder()
        var decoded: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            decoded += decoder.take(bytes[start..<min(start + size, bytes.count)])
        }
        #expect(String(decoding: decoded, as: UTF8.self) == text.dropFirst())
    }

    /// Without a byte order mark of UTF-16 the bytes are not converted.
    @Test(arguments: [[0xEF, 0xBB, 0xBF, 0x61], [0xFF, 0x61, 0xFE], [0xFE], [], [0x61, 0, 0x62, 0]] as [[UInt8]])
    func otherBytesStay(_ bytes: [UInt8]) {
        var decoder = UnicodeDecoder()
        #expect(Array(decoder.take(bytes[...])) == (bytes == [0xFE] ? [] : bytes))
    }

    @Test func anOptionBeforeAnyURLIsAProblem() {
        #expect(entries("  output=x\nhttp://a/1\n").map(\.problem) == [.optionWithoutURL, nil])
    }

    /// A download does not start without an option that was meant for it.
    @Test(arguments: [("checksum=sha256:00", "checksum"), ("--output x", "output"), ("sequential", "sequential")])
    func anOptionThatIsNotIndentedIsOfTheURLAbove(_ line: String, _ name: String) {
        let found = entries("http://a/1\n  output=y\n\(line)\n  limit-rate=1M\nhttp://a/2\n")
        #expect(found.map(\.url) == ["http://a/1", "http://a/2"])
        let value = line.contains("sequential") ? "" : line.hasSuffix("x") ? "x" : "sha256:00"
        #expect(found[0].problem == .optionNotIndented(.init(name: name, value: value, number: 3)))
        #expect(found[1].problem == nil && found[1].options.isEmpty)
        // An option before any URL belongs to no download.
        #expect(entries("\(line)\nhttp://a/1\n").map(\.problem) == [.optionWithoutURL, nil])
        // A line that only looks like an option is a URL.
        #expect(entries("outputs.example/a\n").map(\.url) == ["outputs.example/a"])
    }

    /// The text of an indented URL may hold a password, and the URL above it is fetched without it.
    @Test(arguments: ["  http://u:p@b/2", "\thttps://b/2?a=b"]) func aURLThatIsIndentedIsAProblemOfItsOwn(
        _ line: String
    ) {
        let found = entries("http://a/1\n\(line)\nhttp://a/3\n")
        #expect(found.map(\.problem) == [nil, .indentedURL, nil])
        #expect(found.map(\.url) == ["http://a/1", "", "http://a/3"] && found[0].options.isEmpty)
        #expect(entries("\(line)\n\(line)\n").map(\.number) == [1, 2])
        // Indented URLs that belong to options are allowed.
        #expect(entries("http://a/1\n  mirror http://b/1\n  mirror=http://b/2\n").map(\.options.count) == [2])
    }

    @Test func aLineThatIsTooLongIsAProblemOfItsOwn() {
        let long = String(repeating: "a", count: BatchLineSplitter.maximumLength + 1)
        #expect(
            entries("http://a/1\nhttp://\(long)\nhttp://a/3\n").map(\.problem) == [nil, .lineTooLong(number: 2), nil])
        // A lost option would start a download that the user did not ask for.
        #expect(
            entries("http://a/1\n  header=\(long)\nhttp://a/3\n").map(\.problem) == [.lineTooLong(number: 2), nil])
    }

    @Test(arguments: [1, 2, 3, 7, 100])
    func whereTheBytesAreCutDoesNotMatter(_ size: Int) {
        let text = "http://a/1\r\n  output=é\nhttp://a/2"
        var splitter = BatchLineSplitter()
        var lines: [BatchLineSplitter.Line] = []
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            var piece = bytes[start..<min(bytes.count, start + size)]
            while let line = splitter.take(from: &piece) { lines.append(line) }
        }
        if let line = splitter.finish() { lines.append(line) }
        #expect(lines == [.text("http://a/1"), .text("  output=é"), .text("http://a/2")])
    }
}
