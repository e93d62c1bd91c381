import Testing
import TowlineCore

/// Host names with letters beyond ASCII. The expected forms come from RFC 3492 §7.1, libidn2 and Python's codec.
@Suite("International host names") struct InternationalNameTests {
    @Test(arguments: [
        ("bücher", "xn--bcher-kva"), ("例え", "xn--r8jz45g"), ("faß", "xn--fa-hia"), ("βόλος", "xn--nxasmm1c"),
        ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
        ("почемужеонинеговорятпорусски", "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l"),
        ("3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"), ("münchen-ost", "xn--mnchen-ost-9db"), ("ü", "xn--tda"),
        ("MÜNCHEN", "xn--mnchen-3ya"),
    ]) func labelsAreEncoded(_ label: String, _ expected: String) throws {
        let host = try HTTPURL(parsing: "http://\(label).example/").host
        #expect(host == expected + ".example")
        #expect(host.utf8.allSatisfy { $0 < 0x80 })
        #expect(try HTTPURL(parsing: "http://\(host)/").host == host)
    }

    /// The same letters as two scalars (NFD), as files and keyboards of some systems produce them.
    @Test(arguments: [
        ("bu\u{308}cher", "bücher"), ("cafe\u{301}", "café"), ("\u{1112}\u{1161}\u{11AB}", "한"), ("か\u{3099}", "が"),
    ])
    func composedAndDecomposedNamesAreTheSame(_ decomposed: String, _ composed: String) throws {
        #expect(
            try HTTPURL(parsing: "http://\(decomposed).example/").host.utf8.elementsEqual(
                HTTPURL(parsing: "http://\(composed).example/").host.utf8))
    }

    @Test func eachLabelIsEncodedByItself() throws {
        #expect(try HTTPURL(parsing: "http://a.bücher.例え.test./").host == "a.xn--bcher-kva.xn--r8jz45g.test.")
    }

    @Test func aLabelThatIsTooLongIsRefused() {
        #expect(throws: TowlineError.self) {
            try HTTPURL(parsing: "http://\(String(repeating: "ü", count: 64)).example/")
        }
    }

    @Test func aLocationInRawUTF8LeadsThere() throws {
        let url = try HTTPURL(parsing: "http://start.example/f")
        #expect(try url.resolving("http://例え.example/f").requestText == "http://xn--r8jz45g.example/f")
    }
}
