import Testing

import TowlineCore

@Suite("URLs")
struct HTTPURLTests {
    @Test(
        "The request text of a URL",
        arguments: [
            ("http://example.com", "http://example.com/"),
            ("HTTP://Example.COM:80/a", "http://example.com/a"),
            ("https://example.com:443?x=1", "https://example.com/?x=1"),
            ("http://example.com:8080/a#part", "http://example.com:8080/a"),
            ("http://example.com:/a", "http://example.com/a"),
            ("http://example.com:0080/a", "http://example.com/a"),
            ("  http://example.com/a b  ", "http://example.com/a%20b"),
            ("http://example.com/\"<>\\^`{|}", "http://example.com/%22%3C%3E%5C%5E%60%7B%7C%7D"),
            ("http://example.com/?\"<>\\^`{|} ", "http://example.com/?%22%3C%3E%5C%5E%60%7B%7C%7D"),
            ("http://example.com/é?ü", "http://example.com/%C3%A9?%C3%BC"),
            ("http://example.com/a%2fb%2Fc%", "http://example.com/a%2fb%2Fc%"),
            ("http://example.com/[]'!$&()*+,;=:@", "http://example.com/[]'!$&()*+,;=:@"),
            ("http://example.com/a/./b/../c", "http://example.com/a/c"),
            ("http://example.com/../../etc/passwd", "http://example.com/etc/passwd"),
            ("http://example.com/a/..", "http://example.com/"),
            ("http://example.com//a//..", "http://example.com//a/"),
            ("http://example.com/?a/../b", "http://example.com/?a/../b"),
            ("http://user:secret@example.com/a", "http://example.com/a"),
            ("http://example.com/\u{1B}[2J", "http://example.com/%1B[2J"),
            (" \thttp://example.com/\t", "http://example.com/"),
            ("http://example.com/a\tb?\u{1}=\u{7F}", "http://example.com/a%09b?%01=%7F"),
            ("http://example.com/\u{85}", "http://example.com/%C2%85"),
            ("http://[::1]:8080/a", "http://[::1]:8080/a"),
            ("http://[2001:DB8::192.0.2.1]/", "http://[2001:db8::192.0.2.1]/"),
            ("http://0x7f000001/", "http://0x7f000001/"),
            ("http://127.1/", "http://127.1/"),
            ("http://example.com./", "http://example.com./"),
            ("http://under_score.example/", "http://under_score.example/"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
            ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
            ("http://日本語.example/", "http://xn--wgv71a119e.example/"),
            ("http://straße.example/", "http://xn--strae-oqa.example/"),
            ("http://[fe80::1%25eth0]:8080/a", "http://[fe80::1%25eth0]:8080/a"),
            ("http://[FE80::1%Wlan.0]/", "http://[fe80::1%25Wlan.0]/"),
            ("http://[fe80::1%252]/", "http://[fe80::1%252]/"),
            ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ])
    func requestText(text: String, expected: String) throws {
        let url = try HTTPURL(parsing: text)
        #expect(url.requestText == expected)
        #expect(try HTTPURL(parsing: url.requestText).requestText == expected)
    }

    /// Parsing the same URL as before is only faster; the previous URL never changes the result.
    @Test(
        "After another URL",
        arguments: [
            "http://example.com/", "http://example.com:8080/x?y", "https://example.com/a", "http://example.com",
            "http://user:secret@example.com/a", "http://[::1]:8080/a", "http://bücher.example/", "http://example.co/",
        ])
    func afterAnother(known: String) throws {
        let last = try HTTPURL(parsing: known)
        let paths = [
            "", "/", "/a b", " ", "/a/../b", "/.", "/..a/b", "/%2e%2E/é", "/a#b/../c", "?x", "/?x#y", "#z", "/a@b",
            ":80/",
            ":8080/x", "m/", "/\"<", "/ ", "/\u{7F}", "/a\u{0}", "@evil.example/", "\\evil.example/", "//x", "/./?/../",
            "/a?b?c", "/a?/./b", "/a/?", "/a?.", "/a./b.c", "/a/.b", "/a%2Fb%20c?d%2Fe/f",
            "/" + String(repeating: "a", count: 17_000), "/" + String(repeating: "é", count: 5000),
        ]
        for path in paths {
            for text in [known + path, last.requestText + path, String(last.requestText.dropLast()) + path, path] {
                let plain = Result { () throws(TowlineError) in try HTTPURL(parsing: text) }
                let quick = Result { () throws(TowlineError) in try HTTPURL(parsing: text, after: last) }
                #expect(plain == quick, "\(text)")
                guard case (.success(let plain), .success(let quick)) = (plain, quick) else { continue }
                #expect(plain.origin == quick.origin && plain.pathAndQuery == quick.pathAndQuery)
                #expect(plain.path == quick.path && plain.query == quick.query)
                #expect(plain.lastPathComponent == quick.lastPathComponent)
                #expect(
                    plain.userInfo == quick.userInfo && plain.requestText.utf8.elementsEqual(quick.requestText.utf8))
            }
        }
    }

    @Test(
        "A word without a scheme is an http URL",
        arguments: [
            ("example.com", "http://example.com/"), ("localhost:8080/dir/a?x=1", "http://localhost:8080/dir/a?x=1"),
            ("127.0.0.1:81", "http://127.0.0.1:81/"), ("[::1]:81/x", "http://[::1]:81/x"),
            ("ftp.example.com/vol1/a@b:c", "http://ftp.example.com/vol1/a@b:c"),
            ("bücher.example/", "http://xn--bcher-kva.example/"),
            ("example.com?x", "http://example.com/?x"), ("https://example.com/a", "https://example.com/a"),
        ])
    func typed(text: String, expected: String) throws {
        #expect(try HTTPURL(typed: text).requestText == expected)
    }

    @Test(
        "A word with another scheme or a name before the host is not completed",
        arguments: [
            "ftp:", "magnet:?xt=urn:btih:0", "gopher://h/x", "file:///etc/passwd", "mailto:a", "a:b@example.com/x",
            "user@example.com", "/etc/passwd", "./a", "", "C:\\a", "http:", "https:/example.com", "example.com:/a",
            "example.com:80:80", "a b",
        ])
    func typedRefused(text: String) {
        #expect(throws: TowlineError.self) { try HTTPURL(typed: text) }
    }

    @Test("A redirect to the same address without its zone keeps the zone; to another address it does not")
    func zones() throws {
        let url = try HTTPURL(parsing: "http://[fe80::1%25eth0]:8080/a")
        #expect(try url.resolving("http://[fe80::1]:81/b").requestText == "http://[fe80::1%25eth0]:81/b")
        #expect(try url.resolving("/b").requestText == "http://[fe80::1%25eth0]:8080/b")
        #expect(try url.resolving("//[fe80::2]/b").requestText == "http://[fe80::2]/b")
    }

    @Test(
        "Texts that are refused",
        arguments: [
            "", " ", "example.com", "//example.com/", "http:", "http:/", "http://", "http:///a", "http:example.com",
            "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "data:,x", "httpx://example.com/",
            "http://example.com/\r\nX: y", "http://example.com/\n", "http://example.com/\r", "http://example.com/\u{0}",
            "http://exam\u{7}ple.com/", "http://u\u{1B}:x@h/", "http://u:\tx@h/",
            "http://h:8\u{B}0/", "http://h\u{7F}/",
            "http://exam\nple.com/", "http://example.com/#\u{0}", "http://u\r\n@example.com/",
            "http://u%0d%0a@example.com/", "http://u:%00@example.com/", "http://%ff@example.com/",
            "http://example.com:0/", "http://example.com:65536/", "http://example.com:99999/", "http://example.com:-1/",
            "http://example.com:+80/", "http://example.com:8a/", "http://example.com: 80/", "http://example.com:80:80/",
            "http://example.com:99999999999999999999/",
            "http://good.example\\@evil.example/", "http://evil.example\\.good.example/", "http://a\\b/",
            "http://@/", "http://user@/", "http://:80/", "http://user:pass@:80/",
            "http://exa mple.com/", "http://exa%6dple.com/", "http://exa<mple.com/", "http://a|b/", "http://a^b/",
            "http://a,b/", "http://a;b/", "http://a=b/", "http://a!b/", "http://a'b/", "http://a\"b/", "http://a(b/",
            "http://a*b/", "http://a~b/", "http://a{b/", "http://a]b/", "http://a[b/",
            "http://.", "http://./", "http://..", "http://.example.com/", "http://a..b/",
            // These turn into / . : @ a/c under IDNA's mapping.
            "http://good.example／evil.example/", "http://evil。example/", "http://evil．example/", "http://a：80/",
            "http://a＠b/", "http://℀.example/", "http://ａ.example/", "http://⑴.example/", "http://a\u{AD}b/",
            "http://a\u{200D}b/", "http://a\u{202E}b/", "http://\u{FFFD}/", "http://😀.example/",
            "http://[::1/", "http://[]/", "http://[:::]/", "http://[1::2::3]/", "http://[1:2:3:4:5:6:7]/",
            "http://[1:2:3:4:5:6:7:8:9]/", "http://[12345::]/", "http://[::g]/", "http://[::1%]/",
            "http://[::1%25a/b]/", "http://[::1%25a@b]/", "http://[::1%25sixteen-letters0]/", "http://[1.2.3.4%25lo]/",
            "http://[::1.2.3]/", "http://[::1.2.3.256]/", "http://[::1.2.3.04]/",
            "http://[1.2.3.4::]/", "http://[::1]x/", "http://[::1]80/", "http://x[::1]/", "http://[1:2:3:4:5:6:7::8]/",
            "http://[1:]/", "http://[:1]/", "http://[v1.a]/",
        ])
    func refused(text: String) {
        let error = #expect(throws: TowlineError.self) { try HTTPURL(parsing: text) }
        #expect(error?.code == .unusableURL)
    }

    @Test(
        "Addresses of version 6",
        arguments: [
            "::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "::ffff:192.0.2.1", "1:2:3:4:5:6:192.0.2.1", "fe80::1:0:0",
            "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
        ])
    func addressLiterals(address: String) throws {
        #expect(try HTTPURL(parsing: "http://[\(address)]/").host == "[\(address)]")
    }

    @Test("A URL is at most 16 KiB, escapes included")
    func length() throws {
        let room = HTTPURL.maximumByteCount - "http://h/".utf8.count
        #expect(try HTTPURL(parsing: "http://h/" + String(repeating: "a", count: room)).path.utf8.count == room + 1)
        #expect(throws: TowlineError.self) {
            try HTTPURL(parsing: "http://h/" + String(repeating: "a", count: room + 1))
        }
        #expect(throws: TowlineError.self) {
            try HTTPURL(parsing: "http://h/" + String(repeating: " ", count: room - 1) + "x")
        }
        #expect(throws: TowlineError.self) {
            try HTTPURL(parsing: "http://h/" + String(repeating: "a", count: 1_000_000))
        }
    }

    @Test(
        "User information",
        arguments: [
            ("http://example.com/", nil), ("http://@example.com/", nil), ("http://u@example.com/", "u"),
            ("http://u:p@example.com/", "u:p"), ("http://:p@example.com/", ":p"), ("http://u:@example.com/", "u:"),
            ("http://u%40x:p%3Aq%25@example.com/", "u@x:p:q%"), ("http://u@x:p@example.com/", "u@x:p"),
            ("http://u:100%@example.com/", "u:100%"), ("http://ü:%C3%A9@example.com/", "ü:é"),
        ] as [(String, String?)])
    func userInfo(text: String, expected: String?) throws {
        let url = try HTTPURL(parsing: text)
        #expect(url.userInfo == expected)
        #expect(url.host == "example.com")
    }

    @Test("The host is what stands before the path, whatever tries to look like it")
    func hostConfusion() throws {
        #expect(try HTTPURL(parsing: "http://good.example@evil.example/").host == "evil.example")
        #expect(try HTTPURL(parsing: "http://a:b@c@d.example/").host == "d.example")
        #expect(try HTTPURL(parsing: "http://good.example?@evil.example/").host == "good.example")
        #expect(try HTTPURL(parsing: "http://good.example#@evil.example/").host == "good.example")
        #expect(try HTTPURL(parsing: "http://good.example/@evil.example/").host == "good.example")
        #expect(try HTTPURL(parsing: "http://good.example/\\@evil.example/").host == "good.example")
    }

    @Test("Origins differ in scheme, host or port and in nothing else")
    func origins() throws {
        func origin(_ text: String) throws -> HTTPURL.Origin { try HTTPURL(parsing: text).origin }
        let base = try origin("https://example.com/a")
        #expect(try origin("HTTPS://u:p@EXAMPLE.com:443/b?c") == base)
        for other in [
            "http://example.com", "http://example.com:443", "https://example.com:8443", "https://example.org",
        ] {
            #expect(try origin(other) != base)
        }
        #expect("\(base)" == "https://example.com")
        #expect(try "\(origin("https://example.com:80"))" == "https://example.com:80")
    }

    @Test("Equality compares everything")
    func equality() throws {
        let url = try HTTPURL(parsing: "http://u:p@example.com/a?b")
        #expect(try url == HTTPURL(parsing: "HTTP://u:p@example.com:80/a?b#c"))
        for other in ["http://u:q@example.com/a?b", "http://example.com/a?b", "http://u:p@example.com/a?c"] {
            #expect(try url != HTTPURL(parsing: other))
        }
    }

    @Test(
        "The last path component",
        arguments: [
            ("/", nil), ("/a/", nil), ("/a", "a"), ("/a/b.zip?c=/d", "b.zip"), ("/a%20b", "a b"), ("/a%2Fb", "a/b"),
            ("/%252e%252e", "%2e%2e"), ("/%ff", "%ff"), ("/100%", "100%"), ("/é", "é"), ("?x", nil), ("/a/..", nil),
        ] as [(String, String?)])
    func lastPathComponent(path: String, expected: String?) throws {
        #expect(try HTTPURL(parsing: "http://h" + path).lastPathComponent == expected)
    }
}

@Suite("Secrets in URLs")
struct HTTPURLSecretTests {
    @Test(
        "Values that grant access are taken out",
        arguments: [
            ("https://u:canary@h/a", "https://h/a"),
            (
                "https://h/a?X-Amz-Signature=canary&X-Amz-Date=20260101",
                "https://h/a?X-Amz-Signature=&X-Amz-Date=20260101"
            ),
            (
                "https://h/a?x-amz-credential=canary&X-AMZ-SECURITY-TOKEN=canary",
                "https://h/a?x-amz-credential=&X-AMZ-SECURITY-TOKEN="
            ),
            (
                "https://h/a?Policy=canary&Signature=canary&Key-Pair-Id=canary",
                "https://h/a?Policy=&Signature=&Key-Pair-Id="
            ),
            ("https://h/a?sv=1&se=2&sp=r&sig=canary", "https://h/a?sv=1&se=2&sp=r&sig="),
            ("https://h/a?X-Goog-Signature=canary", "https://h/a?X-Goog-Signature="),
            ("https://h/a?hdnea=st=1~exp=2~hmac=canary&x=1", "https://h/a?hdnea=&x=1"),
            ("https://h/a?%74oken=canary", "https://h/a?%74oken="),
            ("https://h/a?a=1;token=canary;canary&b=2", "https://h/a?a=1;token=&b=2"),
            ("https://h/a?token=canary#canary", "https://h/a?token="),
            ("https://h/a?token", "https://h/a?token"), ("https://h/a?", "https://h/a?"),
            ("https://h/a?&&", "https://h/a?&&"),
            (
                "https://h/a?access_token=canary&jwt=canary&__token__=canary",
                "https://h/a?access_token=&jwt=&__token__="
            ),
            ("https://h/a?tokens=3&monkey=4", "https://h/a?tokens=3&monkey=4"),
            ("https://h/a?policy=1&x=2", "https://h/a?policy=1&x=2"),
            ("https://h/a?signature=canary&sig=canary;hmac=canary", "https://h/a?signature=&sig="),
        ])
    func redaction(text: String, expected: String) throws {
        let url = try HTTPURL(parsing: text)
        #expect(url.withoutSecrets == expected)
        #expect(try HTTPURL(parsing: expected).withoutSecrets == expected)
        var dumped = ""
        dump(url, to: &dumped)
        for printed in ["\(url)", String(reflecting: url), String(describing: Optional(url)), dumped, "\([url])"] {
            #expect(!printed.contains("canary"))
        }
    }

    @Test(
        "Without its secrets, a URL is ambiguous unless they belong to a complete signature scheme",
        arguments: [
            ("policy=1", false), ("key-pair-id=1", false), ("policy=1&x=2", false),
            ("signature=1", true), ("sig=1", true), ("hmac=1", true), ("AWSAccessKeyId=1", true), ("token=1", true),
            ("Policy=1&Signature=2&Key-Pair-Id=3", false), ("Expires=1&Signature=2", false), ("se=1&sig=2", true),
            ("expire=1&sig=2", false), ("exp=1&hmac=2", false), ("exp=1;hmac=2", true), ("hdnea=1", false),
            ("GoogleAccessId=1&Signature=2", true), ("GoogleAccessId=1&Signature=2&Expires=3", false),
            ("X-Amz-Signature=1", true), ("hdnea=1&key=2", true), ("Signature=", false), ("token=", false),
        ])
    func ambiguity(query: String, isAmbiguous: Bool) throws {
        #expect(LinkIdentity(try HTTPURL(parsing: "https://h/a?\(query)")).isAmbiguous == isAmbiguous)
    }

    @Test(
        "Nor does an error show them",
        arguments: [
            "http://u:canary@/", "http://u:canary@h:99999/a?token=canary", "ftp://u:canary@h/?token=canary",
            "http://u:ca\u{1B}nary@h/", "u:canary@h", "http://u:can/ary@h\n/canary@", "http://h\n?canary",
            "http://h\u{0}#canary",
        ])
    func errors(text: String) {
        let error = #expect(throws: TowlineError.self) { try HTTPURL(parsing: text) }
        let message = error?.message ?? ""
        #expect(!message.contains("canary"))
        #expect(!message.contains("nary"))
        #expect(!message.utf8.contains { ASCII.isControl($0) })
        #expect(throws: TowlineError.self) {
            try HTTPURL(parsing: "http://h/" + String(repeating: "a", count: 16_384) + "?token=canary")
        }
    }
}

@Suite("References")
struct HTTPURLReferenceTests {
    /// RFC 3986 §5.4.1 and §5.4.2, less those that are not http. Fragments are dropped.
    @Test(
        "RFC 3986 §5.4",
        arguments: [
            ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"), ("g#s", "/b/c/g"), ("g?y#s", "/b/c/g?y"), (";x", "/b/c/;x"), ("g;x", "/b/c/g;x"),
            ("g;x?y#s", "/b/c/g;x?y"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../", "/b/"), ("../g", "/b/g"),
            ("../..", "/"), ("../../", "/"), ("../../g", "/g"), ("../../../g", "/g"), ("../../../../g", "/g"),
            ("/./g", "/g"), ("/../g", "/g"), ("g.", "/b/c/g."), (".g", "/b/c/.g"), ("g..", "/b/c/g.."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"), ("./g/.", "/b/c/g/"), ("g/./h", "/b/c/g/h"), ("g/../h", "/b/c/h"),
            ("g;x=1/./y", "/b/c/g;x=1/y"), ("g;x=1/../y", "/b/c/y"), ("g?y/./x", "/b/c/g?y/./x"),
            ("g?y/../x", "/b/c/g?y/../x"), ("g#s/../x", "/b/c/g"),
            ("/\\evil.example", "/%5Cevil.example"), (" g ", "/b/c/g"), ("g h", "/b/c/g%20h"), ("é", "/b/c/%C3%A9"),
        ])
    func examples(reference: String, expected: String) throws {
        let base = try HTTPURL(parsing: "http://u:p@a/b/c/d;p?q")
        let resolved = try base.resolving(reference)
        #expect(resolved.pathAndQuery == expected)
        #expect(resolved.origin == base.origin)
        #expect(resolved.userInfo == "u:p")
    }

    @Test(
        "References with an authority",
        arguments: [
            ("//g", "http://g/"), ("//g:8080/x/../y", "http://g:8080/y"), ("https://g/x", "https://g/x"),
            ("HTTP://G/x", "http://g/x"), ("//u2:p2@g/", "http://g/"), ("//[::1]/", "http://[::1]/"),
        ])
    func authorities(reference: String, expected: String) throws {
        let resolved = try HTTPURL(parsing: "http://u:p@a/b").resolving(reference)
        #expect(resolved.requestText == expected)
        #expect(resolved.userInfo != "u:p")
    }

    @Test(
        "Refused",
        arguments: [
            "", "  ", "file:///etc/passwd", "ftp://h/", "javascript:alert(1)", "data:,x", "mailto:a@b", "http:g",
            "http:/g",
            "http://", "//", "///x", "g\r\nSet-Cookie: x", "g\u{0}", "//h:0/", "//h\\x/", "a:b", "h2+x.y-z:x",
        ])
    func refused(reference: String) throws {
        let base = try HTTPURL(parsing: "http://a/b")
        let error = #expect(throws: TowlineError.self) { try base.resolving(reference) }
        #expect(error?.code == .redirectRefused)
    }

    @Test("A resolved reference is bounded too")
    func length() throws {
        let base = try HTTPURL(parsing: "http://a/" + String(repeating: "b", count: 9000) + "/")
        #expect(throws: TowlineError.self) { try base.resolving(String(repeating: "c", count: 9000)) }
    }
}
