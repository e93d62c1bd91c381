import TestServers
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

extension CurlTransportTests {
    /// Tests RFC 6265 as libcurl implements it, over a proxy that plays all hosts.
    @Suite struct CookieTests {
        private func field(_ head: String) -> String? {
            let line = head.split(separator: "\r\n").first { $0.hasPrefix("Cookie: ") }
            return line.map { String($0.dropFirst(8)) }
        }

        /// Requests URLs in sequence with one jar, and returns the Cookie field of each request. Responses set
        /// `fields`.
        private func cookies(
            _ urls: [String], setting fields: String = "", file: String? = nil
        ) async -> [String?] {
            let proxy = ScriptedServer(responses: { _ in response("body", fields: fields) })
            defer { proxy.close() }
            let transport = CurlTransport()
            let options = ConnectionOptions.with {
                $0.proxy = "http://127.0.0.1:\(proxy.port)"
                $0.cookieFile = file
            }
            for url in urls {
                _ = await run(.make(url, sendsCredentials: true, connection: options), on: transport)
            }
            await transport.shutdown()
            return proxy.requestHeads.map { field($0) }
        }

        @Test("A host sets cookies for itself and its domain, not for others and not for a public suffix")
        func domains() async {
            let fields = ["host=1", "all=1; Domain=b.co.uk", "suffix=1; Domain=co.uk", "other=1; Domain=example.org"]
                .map { "Set-Cookie: \($0)\r\n" }.joined()
            let urls = [
                "http://a.b.co.uk/", "http://a.b.co.uk/x", "http://c.b.co.uk/", "http://z.co.uk/",
                "http://example.org/",
            ]
            let sent = await cookies(urls, setting: fields)
            #expect(sent[0] == nil && sent[1]?.contains("host=1") == true && sent[1]?.contains("all=1") == true)
            #expect(sent[2] == "all=1", "the second response sets its own host=1 later")
            #expect(sent.allSatisfy { $0?.contains("suffix") != true && $0?.contains("other") != true })
            #expect(sent[3] == nil && sent[4] == nil)
        }

        @Test("Paths, Secure, Max-Age and the second field of the file decide")
        func attributes() async throws {
            let folder = try TemporaryFolder()
            let file = try folder.write(
                "cookies",
                """
                .example.com\tTRUE\t/\tFALSE\t4102444800\tall\t1
                example.com\tFALSE\t/\tFALSE\t0\tone\t2
                #HttpOnly_example.com\tFALSE\t/p\tFALSE\t0\tpath\t3
                .example.com\tTRUE\t/\tTRUE\t0\tsecure\t4
                .example.com\tTRUE\t/\tFALSE\t1\texpired\t5

                """)
            let urls = [
                "http://example.com/", "http://example.com/p/f", "http://www.example.com/", "http://notexample.com/",
                "http://example.com.evil.test/",
            ]
            let sent = await cookies(urls, file: file).map { Set(($0 ?? "").split(separator: "; ").map(String.init)) }
            #expect(sent == [["all=1", "one=2"], ["all=1", "one=2", "path=3"], ["all=1"], [], []])
        }

        @Test(
            "A cookie that a response deletes is not sent again; a value with other characters is sent back unchanged"
        )
        func deletion() async {
            let set = "Set-Cookie: a=\u{E9}x; Path=/\r\n"
            #expect(await cookies(["http://a.test/", "http://a.test/"], setting: set).last == "a=\u{E9}x")
            let delete = "Set-Cookie: a=1\r\nSet-Cookie: a=; Max-Age=0\r\nSet-Cookie: b=2\r\n"
            #expect(await cookies(["http://a.test/", "http://a.test/"], setting: delete).last == "b=2")
        }

        @Test("Two jars on one connection do not share cookies")
        func jars() async {
            let server = ScriptedServer(responses: { _ in response("body", fields: "Set-Cookie: a=1\r\n") })
            defer { server.close() }
            let transport = CurlTransport()
            for options in [ConnectionOptions.loopback, .loopback] {
                _ = await run(.make(server.url(), connection: options), on: transport)
            }
            await transport.shutdown()
            #expect(server.requestHeads.map { field($0) } == [nil, nil])
            #expect(server.connectionCount == 1)
        }

        // MARK: netrc

        @Test(
            "An entry names a host, in any layout; default and comments do not",
            arguments: [
                ("machine a.test login x password y", true), ("login x machine\n a.test\npassword y", true),
                ("machine b.test\tlogin x\r\nmachine\tA.Test", true), ("default login x password y", false),
                ("# machine a.test", false), ("machine b.test # machine a.test", false), ("machine xa.test", false),
                ("machine a.test.evil", false), ("machine", false), ("", false), ("login a.test", false),
            ])
        func netrc(_ text: String, _ isNamed: Bool) {
            #expect(NetrcFile.names("a.test", in: Array(text.utf8)) == isNamed)
        }

        @Test("An entry of an IPv6 address has no brackets")
        func netrcOfAnAddress() {
            #expect(NetrcFile.names("[::1]", in: Array("machine ::1 login x".utf8)))
        }

        @Test(
            "The credentials of a host are found as libcurl finds them",
            arguments: [
                ("machine a.test login x password y", "x:y"), ("machine A.Test\npassword y\nlogin x", "x:y"),
                ("machine b.test login q password r machine a.test login x password y", "x:y"),
                ("machine a.test login x password y machine b.test login q", "x:y"),
                ("machine b.test login machine password r default login x password y", "x:y"),
                ("machine a.test password y", ":y"), ("machine a.test login x", "x:"), ("machine a.test", nil),
                (#"machine a.test login x password "a \"b\n""#, "x:a \"b\n"), ("machine b.test password r", nil),
                ("macdef init\nmachine a.test login q\n\nmachine a.test login x password y", "x:y"),
                ("machine a.test # comment\nlogin x account z password y", "x:y"), ("", nil),
                ("default login x password y machine a.test login q password r", "x:y"),
            ] as [(String, String?)])
        func netrcCredentials(_ text: String, _ credentials: String?) {
            #expect(NetrcFile.credentials(for: "a.test", in: Array(text.utf8)) == credentials)
        }

        // MARK: Digest

        @Test("Basic is rejected, and Digest answers the challenge: the receiver gets only the last response")
        func digest() async {
            let server = ScriptedServer(responses: { head in
                let isDigest = head.contains("Authorization: Digest username=\"bob\"")
                let challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n"
                return isDigest ? response("body") : response("no", status: "401 Unauthorized", fields: challenge)
            })
            defer { server.close() }
            let options = ConnectionOptions.with { $0.user = "bob:secret" }
            let transport = CurlTransport()
            for _ in 0..<2 {
                let record = await run(.make(server.url(), sendsCredentials: true, connection: options), on: transport)
                #expect(record.heads.map(\.status) == [200] && record.body == Array("body".utf8))
            }
            await transport.shutdown()
            // Once the server has asked for Digest, it gets no password.
            let basic = server.requestHeads.map { $0.contains("Authorization: Basic") }
            #expect(basic == [true, false, false, false, false])
            #expect(server.requestHeads.allSatisfy { !$0.contains("secret") })
        }

        @Test("A server that calls every nonce stale gets a few requests, and its 401 is the response")
        func alwaysStale() async {
            let server = ScriptedServer(responses: { _ in
                let challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", stale=true\r\n"
                return response("no", status: "401 Unauthorized", fields: challenge)
            })
            defer { server.close() }
            let options = ConnectionOptions.with { $0.user = "bob:b" }
            let record = await run(.make(server.url(), sendsCredentials: true, connection: options))
            #expect(record.heads.map(\.status) == [401])
            #expect(server.requestHeads.count == 5)
        }

        @Test(
            "A challenge that libcurl cannot answer is the response",
            arguments: ["Digest realm=\"r\", nonce=\"n\", algorithm=X", "Digest", "Digest realm=\"r\""])
        func unusableChallenge(_ challenge: String) async {
            let server = ScriptedServer(responses: { _ in
                response("no", status: "401 Unauthorized", fields: "WWW-Authenticate: \(challenge)\r\n")
            })
            defer { server.close() }
            let options = ConnectionOptions.with { $0.user = "bob:b" }
            let record = await run(.make(server.url(), sendsCredentials: true, connection: options))
            #expect(record.heads.map(\.status) == [401] && record.body == Array("no".utf8))
            #expect(server.requestHeads.count <= 3)
        }
    }
}
