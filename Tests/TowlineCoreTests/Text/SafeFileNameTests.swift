import Testing

import TowlineCore

@Suite("Safe file names")
struct SafeFileNameTests {
    @Test(
        "Made safe",
        arguments: [
            ("a.zip", "a.zip"), ("Grüße 日本.tar.gz", "Grüße 日本.tar.gz"), ("a b-c_d.e", "a b-c_d.e"),
            ("../../.ssh/authorized_keys", "authorized_keys"), ("..\\x", "x"), ("/etc/passwd", "passwd"),
            ("C:\\x", "x"),
            ("C:x", "x"), ("c:.bashrc", "bashrc"), ("C:D:x", "D_x"), (".bashrc", "bashrc"), ("...a", "a"),
            ("-rf", "rf"),
            ("--output=x", "output=x"), (". -.- a", "a"), ("a/b\\c/d", "d"), ("a/..\\b", "b"), ("a.", "a"),
            ("a . . ", "a"),
            ("a\u{3000}", "a"), ("\u{A0}a", "a"), ("CON", "_CON"), ("con.txt", "_con.txt"), ("Nul .x", "_Nul .x"),
            ("COM1", "_COM1"), ("lpt9.tar.gz", "_lpt9.tar.gz"), ("COM¹.x", "_COM¹.x"), ("CONIN$", "_CONIN$"),
            ("COM10", "COM10"),
            ("CONSOLE", "CONSOLE"), ("COMA", "COMA"), ("a<b>c:d\"e|f?g*h", "a_b_c_d_e_f_g_h"), ("?", "_"),
            ("photo\u{202E}gpj.exe", "photogpj.exe"), ("a\u{200B}\u{2066}\u{2069}\u{200F}\u{FEFF}b", "ab"),
            ("a\u{1B}[31mb", "a[31mb"),
            ("a\u{9B}b\u{7F}c\u{0}d\r\ne", "abcde"), ("a\u{2028}b\u{2029}c", "abc"), ("\u{200E}.bashrc", "bashrc"),
            ("a\u{E0041}b", "ab"),
            ("می\u{200C}روم.mp4", "می\u{200C}روم.mp4"), ("👩\u{200D}💻.png", "👩\u{200D}💻.png"),
            ("a\u{200C}b\u{200D}c", "abc"), ("\u{200D}.bashrc", "bashrc"), ("م\u{200C}\u{200D}ر\u{200C}.x", "مر.x"),
            ("%2e%2e%2fx", "%2e%2e%2fx"), ("a.tow", "a_tow"), ("a.tow-journal", "a_tow-journal"),
            ("a.TOW-bad", "a_TOW-bad"),
            ("a.tow.zip", "a.tow.zip"), ("a.town", "a.town"), ("a.tow\u{200B}", "a_tow"), ("a.tow.", "a_tow"),
            ("tow", "tow"), ("a.tow-b.tow", "a_tow-b_tow"),
            ("e\u{301}", "e\u{301}"), ("C:", nil), ("", nil), (".", nil), ("..", nil), ("/", nil), ("a/", nil),
            ("\\", nil),
            ("-", nil), ("   ", nil), ("\u{202E}", nil), ("\u{0}", nil), (". . -", nil), ("\u{3164}", nil),
        ] as [(String, String?)])
    func make(suggestion: String, expected: String?) {
        let name = SafeFileName.make(suggestion)
        #expect(name == expected)
        #expect(name.map { $0.utf8.elementsEqual((expected ?? "").utf8) } ?? true)
    }

    @Test("The shortcut for plain names returns the same name as the complete procedure")
    func plain() {
        let letters = Array("aCONonlpt19.-_tow.x")
        var random = SystemRandomNumberGenerator()
        for _ in 0..<100_000 {
            let name = String((0..<Int.random(in: 1...9, using: &random)).map { _ in letters.randomElement() ?? "a" })
            #expect(SafeFileName.make(name) == SafeFileName.cleaned(name), "\(name)")
        }
        for name in ["CON.tar", "nul.a", "lpt1.txt", "com9", "9com.tow", "a.tow-1", "aux", "prn.tar.gz"] {
            #expect(SafeFileName.make(name) == SafeFileName.cleaned(name), "\(name)")
        }
    }

    @Test("At most 239 bytes, the extension kept, cut between characters")
    func length() throws {
        let long = String(repeating: "a", count: 5000)
        #expect(SafeFileName.make(long) == String(repeating: "a", count: 239))
        #expect(SafeFileName.make(long + ".zip") == String(repeating: "a", count: 235) + ".zip")
        #expect(SafeFileName.make("x." + long) == "x." + String(repeating: "a", count: 237))
        let flags = String(repeating: "🇩🇪", count: 100)
        #expect(SafeFileName.make(flags + ".zip") == String(repeating: "🇩🇪", count: 29) + ".zip")
        let marks = "e" + String(repeating: "\u{301}", count: 500)
        #expect(SafeFileName.make(marks)?.utf8.count == 239)
        #expect(SafeFileName.make("COM¹\u{FFFD}" + String(repeating: "\u{301}", count: 200)) == "_COM¹")
        for joiner in ["\u{200C}", "\u{200D}"] {
            // The 239th byte is that of the joiner, which joins nothing any more.
            let before = String(repeating: "م", count: 118)
            #expect(SafeFileName.make(before + joiner + "روم") == before)
        }
        let dots = String(repeating: "a", count: 230) + String(repeating: ".", count: 20) + "b.zip"
        #expect(SafeFileName.make(dots) == String(repeating: "a", count: 230) + ".zip")
        let cutToOwn = String(repeating: "a", count: 235) + ".tow" + String(repeating: "b", count: 30)
        #expect(SafeFileName.make(cutToOwn) == String(repeating: "a", count: 235) + "_tow")
    }

    @Test("The target of a redirect names the file, as with `wget --content-disposition`")
    func redirected() throws {
        func name(_ target: String, from first: String = "http://h/latest?x") throws -> String {
            let first = try HTTPURL(parsing: first)
            return try SafeFileName.ofURL(
                HTTPURL(parsing: target), redirectedFrom: first, named: SafeFileName.ofURL(first))
        }
        // The name that the user asked for is a file name.
        #expect(try name("http://cdn/3f9a", from: "http://h/disk.iso") == "disk.iso")
        #expect(try name("http://cdn/other.iso", from: "http://h/disk.ISO?x") == "disk.ISO")
        #expect(try name("http://cdn/a.zip", from: "http://h/get.php?id=1") == "a.zip")
        #expect(try name("http://cdn/a.zip", from: "http://h/tool-1.2") == "a.zip")
        #expect(try name("http://h/latest?x") == "latest")
        #expect(try name("https://cdn/tool-1.2.tar.gz?sig=a/b") == "tool-1.2.tar.gz")
        #expect(try name("http://h/d/") == "latest")
        #expect(try name("http://h/%2e%2e%2f.ssh") == "ssh")
        #expect(try name("http://h/...") == "latest")
    }

    @Test(
        "A notice names the file whose name lost a dot or a hyphen",
        arguments: [
            (nil, "http://h/.bashrc", "bashrc"), (nil, "http://h/%2Drf", "rf"), (nil, "http://h/a.b", nil),
            ("attachment; filename=.netrc", "http://h/a", "netrc"), ("attachment; filename=x", "http://h/.a", nil),
            ("attachment; filename=\"..\"", "http://h/.a", "a"),
        ] as [(String?, String, String?)])
    func notice(disposition: String?, url: String, name: String?) throws {
        let url = try HTTPURL(parsing: url)
        let head = ResponseHead(
            status: 200, fields: HTTPFields(disposition.map { [("Content-Disposition", $0)] } ?? []))
        let facts = ResponseFacts(head, nameOfURL: SafeFileName.ofURL(url))
        let notice = SafeFileName.notice(facts, from: url)
        #expect((notice != nil) == (name != nil))
        if let name { #expect(notice?.message.contains("saved as \(name) because") == true) }
    }

    @Test("A number fits behind a long name, too")
    func numbered() {
        let long = String(repeating: "n", count: 251) + ".iso"
        #expect(SafeFileName.numbered(long, 12) == String(repeating: "n", count: 246) + " (12).iso")
        #expect(SafeFileName.numbered("a.iso", 1) == "a (1).iso")
        #expect(SafeFileName.numbered(String(repeating: "ж", count: 127), 1).utf8.count == 254)
    }

    @Test("Content-Disposition, else the URL, else a fixed name")
    func nameOfDownload() throws {
        func name(_ disposition: String?, _ url: String) throws -> String {
            let fields = HTTPFields(disposition.map { [("Content-Disposition", $0)] } ?? [])
            return try SafeFileName.suggested(by: fields) ?? SafeFileName.ofURL(HTTPURL(parsing: url))
        }
        #expect(try name("attachment; filename=\"../a.zip\"", "http://h/b.zip") == "a.zip")
        #expect(try name("attachment; filename=\"..\"", "http://h/b.zip") == "b.zip")
        #expect(try name(nil, "http://h/x/b%20c.zip?d=/e") == "b c.zip")
        #expect(try name(nil, "http://h/..%2f..%2f.ssh%2fid_rsa") == "id_rsa")
        #expect(try name(nil, "http://h/%252e%252e%252fx") == "%2e%2e%2fx")
        #expect(try name(nil, "http://h/%2e%2e") == "download")
        #expect(try name(nil, "http://h/") == "download")
        #expect(try name(nil, "http://h/a:b*c%3Fd.bin?x") == "a:b*c?d.bin")
        #expect(try name(nil, "http://h/c:x") == "c:x")
        #expect(try name(nil, "http://h/%22a%22|b") == "_a__b")
        #expect(try name("attachment; filename=\"c:x?\"", "http://h/") == "x_")
        #expect(try name("attachment; filename*=UTF-8''%2e%2e%2f%2e%2e%2fevil", "http://h/") == "evil")
        #expect(try name("attachment; filename*=UTF-8''%252e%252e%252fx", "http://h/") == "%2e%2e%2fx")
    }
}
