import Testing

@testable import TowlineCore

@Suite("Bytes as text")
struct ByteTextTests {
    private static let samples: [[UInt8]] = [
        [], Array("plain.bin".utf8), Array("é日本🇩🇪".utf8), [0xE4, 0xFF, 0x2E], [0xFE], [0xC3], [0xE2, 0x82],
        [0xC0, 0xAF],
        [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80], [0x80, 0x9F], [0x65, 0xCC, 0x81, 0xE9],
        Array("\u{10FFE9}".utf8), Array("\u{10FF7F}\u{10FFFF}\u{100000}".utf8), Array(0...255),
    ]

    @Test("Each sequence of bytes has its own text and is restored")
    func roundTrip() {
        var samples = Self.samples
        for first in UInt8.min...UInt8.max { samples += [0x41, 0x80, 0xBF, 0xC3, 0xF4].map { [first, $0] } }
        for bytes in samples { #expect(ByteText.encode(ByteText.decode(bytes)) == bytes) }
        #expect(Set(samples.map { Array(ByteText.decode($0).utf8) }).count == Set(samples).count)
    }

    @Test("UTF-8 is kept as text")
    func plain() {
        for text in ["", "a b", "é", "日本", "🇩🇪", "\u{10FF7F}", "\u{E000}"] {
            #expect(ByteText.decode(Array(text.utf8)).utf8.elementsEqual(text.utf8))
            #expect(ByteText.encode(text) == Array(text.utf8))
        }
    }

    /// `tow add` sends URLs to towd as JSON, which has no bytes outside UTF-8.
    @Test("Bytes of a typed URL that are not UTF-8 are percent-encoded")
    func percentEncoded() {
        let text = ByteText.decode(Array("a.test/caf".utf8) + [0xE9] + Array("é?x=\u{10FFE9}".utf8) + [0x80])
        #expect(HTTPURL.withScheme(text) == "http://a.test/caf%E9é?x=%F4%8F%BF%A9%80")
    }

    @Test("C gets the bytes")
    func cString() {
        for bytes in Self.samples where !bytes.contains(0) {
            let text = ByteText.decode(bytes)
            let seen = ByteText.withCString(text) { pointer in
                var seen: [UInt8] = []
                while pointer[seen.count] != 0 { seen.append(UInt8(bitPattern: pointer[seen.count])) }
                return seen
            }
            #expect(seen == bytes)
        }
    }

    @Test("Messages escape a byte that is not UTF-8")
    func shown() {
        let name = ByteText.decode(Array("é".utf8) + [0xE9, 0x80, 0x0A])
        #expect(ByteText.shown(name) == "é\\xe9\\x80\n")
        #expect(TerminalSafeText.make(name) == "é\\xe9\\x80\\x0a")
        #expect(ByteText.shown("\u{10FF7F}") == "\u{10FF7F}")
    }

    @Test("Bytes from a server that are not UTF-8 are read as ISO-8859-1")
    func readable() {
        #expect(ByteText.readable(ByteText.decode([0x72, 0xE9, 0x73])) == "rés")
        #expect(ByteText.readable("rés") == "rés")
    }

    @Test("A URL percent-encodes bytes unchanged")
    func urls() throws {
        let text = "http://h/" + ByteText.decode([0xC3, 0xA9, 0x2D, 0xE9, 0x2F, 0xFF, 0x3F, 0x71, 0x3D, 0xE9])
        let url = try HTTPURL(parsing: text)
        #expect(url.requestText == "http://h/%C3%A9-%E9/%FF?q=%E9")
        let base = try HTTPURL(parsing: "http://h/a/b")
        #expect(try base.resolving(ByteText.decode([0xE9, 0x2E])).requestText == "http://h/a/%E9.")
        // A character that a server sends as UTF-8 is requested as UTF-8.
        let character = ByteText.decode(Array("/\u{10FFE9}".utf8))
        #expect(try base.resolving(character).requestText == "http://h/%F4%8F%BF%A9")
    }

    @Test("A safe name keeps bytes from a list, and counts them as on disk")
    func safeNames() {
        let name = ByteText.decode([UInt8](repeating: 0xFE, count: 200) + Array(".bin".utf8))
        #expect(SafeFileName.make(name) == name)
        let long = SafeFileName.make(ByteText.decode([UInt8](repeating: 0xE9, count: 300) + Array(".bin".utf8)))
        #expect(long.map { ByteText.encode($0).count } == SafeFileName.maximumByteCount)
        #expect(long?.hasSuffix(".bin") == true)
        let slash = SafeFileName.make(ByteText.decode([0xE9, 0x2F, 0xE8]))
        #expect(slash.map(ByteText.encode) == [0xE8])
    }
}
