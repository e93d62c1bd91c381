import FaultServer
import Foundation
import Testing
import Towline
import TowlineService
import TowlineWire

/// Tests of access control and refused requests: faults 119, 121 to 123, 125, 127 and 129 of the catalogue.
@Suite struct GuardTests {
    private static let json = ["Content-Type": "application/json"]

    /// Sends a request over TCP, with the token unless `token` is `false`.
    private func ask(
        _ site: ServiceSite, _ method: String, _ target: String, _ fields: [String: String] = [:],
        body: String = "", token: Bool = true
    ) async throws -> RawExchange.Answer {
        var fields = fields
        if token { fields["Authorization"] = "Bearer " + site.service.token.text }
        return try await RawExchange.send(
            method, target, to: .port(site.port), fields: fields, body: Array(body.utf8))
    }

    @Test func row122HostsOfOthersAreRefused() async throws {
        let site = try await ServiceSite { $0.hostNames = ["nas.example"] }
        let port = site.port
        for host in [
            "127.0.0.1", "127.0.0.1:\(port)", "localhost:1", "LOCALHOST", "localhost.", "[::1]:\(port)", "nas.example",
        ] {
            #expect(try await ask(site, "GET", "/api/v1/totals", ["Host": host]).status == 200, "\(host)")
        }
        let refused = [
            "evil.test", "evil.test:\(port)", "127.0.0.1.evil.test", "evil.test#127.0.0.1", "127.0.0.1:x", "0.0.0.0",
            "nas.example.evil.test", "127.0.0.1@evil.test", "",
        ]
        for host in refused {
            for path in ["/api/v1/totals", "/api/v1/health", "/"] {
                let status = try await ask(site, "GET", path, ["Host": host]).status
                #expect(status == 403 || status == 400, "\(host) \(path)")
            }
        }
        try await site.stop()
    }

    /// A service on all addresses accepts the address of the connection as its host: DNS rebinding needs a name.
    @Test func row122ListeningEverywhereTheOwnAddressIsBelieved() async throws {
        let site = try await ServiceSite { $0.addresses = [ListenAddress(host: "0.0.0.0", port: 0)] }
        let fields = ["Authorization": "Bearer " + site.service.token.text]
        func ask(_ host: String, at number: UInt8) async throws -> Int {
            try await RawExchange.send(
                "GET", "/api/v1/totals", to: .loopback(number, port: site.port),
                fields: fields.merging(["Host": host]) { $1 }
            ).status
        }
        #expect(try await ask("127.0.0.7", at: 7) == 200)
        #expect(try await ask("127.0.0.7:\(site.port)", at: 7) == 200)
        for host in ["127.0.0.8", "0.0.0.0", "evil.test", "127.0.0.7.evil.test", "192.168.7.7", "[::]"] {
            #expect(try await ask(host, at: 7) == 403, "\(host)")
        }
        let pages = try await site.ask("GET", "/settings").object["pages"] as? [String] ?? []
        #expect(pages.contains("http://127.0.0.1:\(site.port)/"))
        #expect(!pages.contains { $0.contains("0.0.0.0") }, "nobody can go there: \(pages)")
        try await site.stop()
    }

    /// Only a configured host name counts as a proxy with TLS.
    @Test func row123PagesBehindAProxyWithTLSAreOurs() async throws {
        let site = try await ServiceSite { $0.hostNames = ["nas.example"] }
        let body = #"{"url":"http://127.0.0.1:9/x","startsPaused":true}"#
        func ask(_ host: String, _ origin: String) async throws -> Int {
            try await self.ask(
                site, "POST", "/api/v1/downloads",
                Self.json.merging(["Host": host, "Origin": origin, "Sec-Fetch-Site": "same-origin"]) { $1 }, body: body
            ).status
        }
        #expect(try await ask("nas.example", "https://nas.example") == 201)
        #expect(try await ask("nas.example:8443", "https://nas.example:8443") == 201)
        #expect(try await ask("nas.example", "http://nas.example") == 201)
        for (host, origin) in [
            ("nas.example", "https://nas.example:8443"), ("nas.example", "https://evil.test"),
            ("nas.example", "ftp://nas.example"), ("127.0.0.1", "https://127.0.0.1"),
            ("localhost", "https://localhost"), ("127.0.0.1", "https://nas.example"),
        ] { #expect(try await ask(host, origin) == 403, "\(host) \(origin)") }
        try await site.stop()
    }

    /// A URL or a port of `--host` names the origin of the page behind a proxy that changes the `Host` header field.
    @Test func row123AConfiguredOriginIsOurs() async throws {
        let site = try await ServiceSite { $0.hostNames = ["http://NAS.example:8080/towline/", "tv.example:81"] }
        let body = #"{"url":"http://127.0.0.1:9/x","startsPaused":true}"#
        func ask(_ host: String, _ origin: String) async throws -> RawExchange.Answer {
            try await self.ask(
                site, "POST", "/api/v1/downloads", Self.json.merging(["Host": host, "Origin": origin]) { $1 },
                body: body)
        }
        for (host, origin) in [
            ("127.0.0.1", "http://nas.example:8080"), ("nas.example", "http://nas.example:8080"),
            ("localhost:\(site.port)", "https://tv.example:81"), ("tv.example", "http://tv.example:81"),
        ] { #expect(try await ask(host, origin).status == 201, "\(host) \(origin)") }
        for (host, origin) in [
            ("127.0.0.1", "http://nas.example"), ("127.0.0.1", "https://nas.example:8080"),
            ("127.0.0.1", "http://nas.example:8081"), ("nas.example", "http://nas.example:8081"),
            ("127.0.0.1", "http://tv.example"), ("127.0.0.1", "http://evil.test"), ("127.0.0.1", "null"),
        ] { #expect(try await ask(host, origin).status == 403, "\(host) \(origin)") }
        let refused = try await ask("127.0.0.1", "http://nas.example:8081").object["detail"] as? String
        #expect(refused?.contains("--host http://nas.example:8081") == true, "\(refused ?? "")")
        let odd = try await ask("127.0.0.1", "http://a.test/<b>").object["detail"] as? String
        #expect(odd?.contains("<b>") == false)
        // The page itself loads from any address, so that it can show the reason.
        let file = try await self.ask(site, "GET", "/page/main.js", ["Origin": "http://evil.test"], token: false)
        #expect(file.status == 200)
        try await site.stop()
    }

    @Test func namesOfThePageAreNamesPortsOrURLs() {
        let accepted = [
            "nas", "nas.example", "NAS.example:8080", "https://nas.example/x", "http://[::1]:80", "[fe80::1]",
            "nas.example.", "my_nas", "https://nas.example?x", "https://nas.example#x",
        ]
        for text in accepted {
            #expect(ServedName(text) != nil, "\(text)")
        }
        let refused = [
            "", "nas.example/", "nas.example:", "nas.example:0", "nas.example:99999", "ftp://nas.example", "https://",
            "a b", "*.example", "name@nas.example", "::1", "https://nas.example:x", ".nas.example", "a..b", "-",
            "[::g]",
            "nas.example:+80",
        ]
        for text in refused { #expect(ServedName(text) == nil, "\(text)") }
        #expect(ServedName("https://nas.example:443/")?.origins == ["https://nas.example"])
        #expect(ServedName("nas.example:80")?.origins == ["http://nas.example", "https://nas.example:80"])
    }

    /// Browsers send IPv6 addresses compressed, and the dot at the end of a name if the user typed it.
    @Test func aNameHasSeveralForms() async throws {
        let site = try await ServiceSite { $0.hostNames = ["nas.example", "https://b.example./", "[FD00:0:0::1]"] }
        for host in ["nas.example.", "NAS.example.:80", "b.example", "b.example.", "[fd00::1]", "[fd00:0::1]:80"] {
            let answer = try await ask(site, "GET", "/api/v1/health", ["Host": host], token: false)
            #expect(answer.status == 200, "\(host)")
        }
        for (host, status) in [
            "nas.example..": 400, "x.nas.example": 403, "[fd00::2]": 403, "nas.example:+80": 400,
        ] {
            let answer = try await ask(site, "GET", "/api/v1/health", ["Host": host], token: false)
            #expect(answer.status == status, "\(host)")
        }
        try await site.stop()
    }

    @Test func listenAddressesHaveFewForms() {
        #expect(ListenAddress("*:8080") == ListenAddress(host: "0.0.0.0", port: 8080))
        #expect(ListenAddress("[::]:8080") == ListenAddress(host: "::", port: 8080))
        for text in ["a b:1", "127.0.0.1:+80", "127.0.0.1/x", "::1", "http://127.0.0.1:80"] {
            #expect(ListenAddress(text) == nil, "\(text)")
        }
    }

    /// A proxy may keep a path prefix, or remove the prefix without its slash.
    @Test func aPathPrefixIsNotTheFaultOfTheToken() async throws {
        let site = try await ServiceSite()
        let opening = ["Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"]
        let kept = try await ask(site, "GET", "/towline/", opening, token: false)
        #expect(kept.status == 404 && (kept.object["detail"] as? String)?.contains("proxy") == true)
        for path in ["//", "//page/main.js", "//api/v1/health"] {
            let answer = try await ask(site, "GET", path, ["Sec-Fetch-Site": "same-origin"], token: false)
            #expect(answer.status == 200, "\(path)")
        }
        #expect(try await ask(site, "GET", "//", opening, token: false).status == 200)
        #expect(try await ask(site, "GET", "//api/v1/downloads", token: false).status == 401)
        #expect(try await ask(site, "GET", "/metrics", token: false).status == 401)
        try await site.stop()
    }

    @Test func row123PagesOfOthersAreRefused() async throws {
        let site = try await ServiceSite()
        let own = "http://127.0.0.1:\(site.port)"
        let body = #"{"url":"http://127.0.0.1:9/x","startsPaused":true}"#
        let target = "/api/v1/downloads"
        let cookie = ["Cookie": try await site.cookie()]
        let lawful: [[String: String]] = [
            [:], ["Origin": own, "Sec-Fetch-Site": "same-origin"], ["Content-Type": "application/json; charset=utf-8"],
        ]
        for fields in lawful {
            let all = Self.json.merging(cookie) { $1 }.merging(fields) { $1 }
            #expect(try await ask(site, "POST", target, all, body: body, token: false).status == 201, "\(fields)")
        }
        let unlawful: [([String: String], Int)] = [
            (["Origin": "null"], 403), (["Origin": "http://evil.test"], 403), (["Origin": own + "0"], 403),
            (["Origin": "https://127.0.0.1:\(site.port)"], 403), (["Origin": "http://localhost:\(site.port)"], 403),
            (["Sec-Fetch-Site": "cross-site"], 403), (["Sec-Fetch-Site": "same-site"], 403),
            (["Sec-Fetch-Site": "none"], 403), (["Content-Type": "text/plain"], 415),
            (["Content-Type": "application/x-www-form-urlencoded"], 415), (["Content-Type": ""], 415),
        ]
        for (fields, status) in unlawful {
            let all = Self.json.merging(cookie) { $1 }.merging(fields) { $1 }
            let answer = try await ask(site, "POST", target, all, body: body, token: false)
            #expect(answer.status == status, "\(fields)")
        }
        let plain = try await ask(site, "OPTIONS", target, ["Origin": own])
        #expect(!plain.fields.keys.contains { $0.hasPrefix("access-control") })
        // A link from another application opens the page, but has no access to the API.
        #expect(try await ask(site, "GET", "/", ["Sec-Fetch-Site": "none"], token: false).status == 200)
        #expect(try await ask(site, "GET", target, ["Sec-Fetch-Site": "none"]).status == 403)
        // A bookmarklet opens the page too. A frame or a script of another site has no access.
        let opening = ["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"]
        #expect(try await ask(site, "GET", "/", opening, token: false).status == 200)
        #expect(try await ask(site, "GET", target, opening).status == 403)
        for (name, value) in [("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Mode", "no-cors")] {
            let other = opening.merging([name: value]) { $1 }
            #expect(try await ask(site, "GET", "/", other, token: false).status == 403, "\(other)")
        }
        try await site.stop()
    }

    @Test func nothingWithoutTheToken() async throws {
        let site = try await ServiceSite()
        let token = site.service.token.text
        let closed = [
            "/api/v1/downloads", "//api/v1/downloads", "/api/v1/totals", "/api//v1/totals", "/metrics",
            "/api/v1/events", "/api/v1/openapi.json", "/page/../api/v1/totals", "/nothing",
        ]
        for path in closed {
            #expect([401, 404].contains(try await ask(site, "GET", path, token: false).status), "\(path)")
            #expect(try await ask(site, "GET", path, token: false).fields["set-cookie"] == nil)
        }
        let wrong = [
            "Bearer \(token)0", "Bearer \(token.dropLast())", "Bearer ", "Basic \(token)", token,
            "Bearer " + String(token.reversed()),
        ]
        for value in wrong {
            let answer = try await ask(site, "GET", "/api/v1/totals", ["Authorization": value], token: false)
            #expect(answer.status == 401, "\(value)")
            #expect(answer.fields["www-authenticate"] == "Bearer")
        }
        #expect(try await ask(site, "GET", "/api/v1/health", token: false).status == 200)
        let session = try await ask(
            site, "POST", "/api/v1/session", Self.json, body: #"{"token":"\#(token)"}"#, token: false)
        #expect(session.status == 204)
        let cookie = try #require(session.fields["set-cookie"])
        #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/"))
        let refused = try await ask(
            site, "POST", "/api/v1/session", Self.json, body: #"{"token":"no"}"#, token: false)
        #expect(refused.status == 401)
        #expect(refused.fields["set-cookie"] == nil)
        try await site.stop()
    }

    @Test func row121DownloadsStayInsideTheirDirectory() async throws {
        let site = try await ServiceSite()
        let manager = FileManager.default
        let outside = site.root.appendingPathComponent("outside")
        try manager.createDirectory(at: outside, withIntermediateDirectories: true)
        try manager.createDirectory(at: site.downloads.appendingPathComponent("in"), withIntermediateDirectories: true)
        try manager.createSymbolicLink(
            at: site.downloads.appendingPathComponent("link"), withDestinationURL: outside)
        try manager.createSymbolicLink(
            at: site.downloads.appendingPathComponent("inner"),
            withDestinationURL: site.downloads.appendingPathComponent("in"))
        let refused = [
            "..", "../outside", "in/../../outside", "/etc", "/", "link", "link/new", outside.path, ".hidden",
            "in/.ssh", "in/./.ssh", "./..", site.downloads.path + "x", "in\u{0}/x",
        ]
        for directory in refused {
            let answer = try await site.ask(
                "POST", "/downloads", ["url": "http://127.0.0.1:9/x", "directory": directory, "startsPaused": true])
            #expect(answer.status == 400, "\(directory)")
        }
        #expect(try manager.contentsOfDirectory(atPath: outside.path) == [])
        for directory in [
            "in", "in/new/deep", "inner", site.downloads.path, site.downloads.path + "/in", ".", "./", "./in", "in/./x",
        ] {
            let answer = try await site.ask(
                "POST", "/downloads", ["url": "http://127.0.0.1:9/x", "directory": directory, "startsPaused": true])
            #expect(answer.status == 201, "\(directory)")
        }
        for name in ["../x", "a/b", ".bashrc", "..", "", "x\u{0}", "a\u{1B}[2J", "x.tow", "x.tow-journal"] {
            let answer = try await site.ask(
                "POST", "/downloads", ["url": "http://127.0.0.1:9/x", "name": name, "startsPaused": true])
            #expect(answer.status == 400, "\(name)")
        }
        for into in ["../x", "/etc/x", "link/x", ".x"] {
            let body: [String: Any] = ["url": "http://127.0.0.1:9/x", "unpack": ["into": into], "startsPaused": true]
            #expect(try await site.ask("POST", "/downloads", body).status == 400, "\(into)")
        }
        try await site.stop()
    }

    @Test func row119LargeDeepAndNonsensicalBodiesAreRefused() async throws {
        let site = try await ServiceSite { $0.bodyTimeout = .seconds(1) }
        let post = { (body: [UInt8]) in
            try await RawExchange.send("POST", "/api/v1/downloads", to: site.socket, fields: Self.json, body: body)
                .status
        }
        #expect(try await post(Array(repeating: UInt8(ascii: " "), count: 2 << 20)) == 413)
        #expect(try await post(Array(String(repeating: "[", count: 100_000).utf8)) == 400)
        #expect(try await post(Array((String(repeating: #"{"a":"#, count: 100_000)).utf8)) == 400)
        let bodies = [
            "", "null", "[]", "{}", "7", #"{"url":7}"#, #"{"url":null}"#, #"{"url":"http://h/","connections":-1}"#,
            #"{"url":"http://h/","rateLimit":-5}"#, #"{"url":"http://h/","rateLimit":1e400}"#,
            #"{"url":"http://h/","stallTimeout":-1}"#, #"{"url":"http://h/","maximumTries":-1}"#,
            #"{"url":"http://h/","priority":99999999999999999999}"#, #"{"url":"file:///etc/passwd"}"#,
            #"{"url":"http://h/\r\nX: y"}"#, #"{"url":"http://h/","existing":"maybe"}"#, #"{"downloads":[]}"#,
            #"{"downloads":[{"url":"http://h/"}],"url":"http://h/"}"#, #"{"url":"http://h/","followUps":[]}"#,
            #"{"url":"http://h/","run":"/bin/sh"}"#, #"{"url":"http://h/","proxy":"ftp://x/"}"#,
            #"{"downloads":[{"url":"http://h/","run":"/bin/sh"}]}"#, #"{"url":"http://h/","retryStatuses":404}"#,
            #"{"url":"http://h/","netrc":true}"#, #"{"url":"http://h/","netrcFile":"/etc/passwd"}"#,
            #"{"url":"http://h/","cookies":"/etc/passwd"}"#, #"{"url":"http://h/","cacert":"/etc/passwd"}"#,
            #"{"url":"http://h/","headers":[{"name":"A\r\nB","value":"c"}]}"#,
            #"{"url":"http://h/","checksum":"sha256:xyz"}"#,
        ]
        for body in bodies { #expect(try await post(Array(body.utf8)) == 400, "\(body)") }
        #expect(try await site.ask("GET", "/downloads").object["downloads"] as? [[String: String]] == [])
        try await site.stop()
    }

    @Test func row129PathsThatLeadElsewhereAreNotThere() async throws {
        let site = try await ServiceSite()
        let paths = [
            "/..%2f..%2fetc/passwd", "/page/..%2f..%2ftoken", "/page/../../token", "/%2e%2e/token",
            "/api/v1/downloads/..%2f..", "/api/v1/downloads/%00", "/page/", "/page",
        ]
        for path in paths {
            let status = try await ask(site, "GET", path).status
            #expect(status == 404 || status == 400, "\(path): \(status)")
        }
        let page = try await ask(site, "GET", "/", token: false)
        #expect(page.status == 200)
        #expect(page.fields["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(page.fields["x-content-type-options"] == "nosniff")
        #expect(page.fields["referrer-policy"] == "no-referrer")
        #expect(try await ask(site, "PUT", "/api/v1/downloads").status == 405)
        #expect(try await ask(site, "PUT", "/api/v1/downloads").fields["allow"]?.contains("POST") == true)
        try await site.stop()
    }

    @Test func row127ModesHoldWhateverTheMask() async throws {
        let before = umask(0)
        defer { umask(before) }
        let site = try await ServiceSite()
        func mode(_ path: String) throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(
                atPath: site.root.appendingPathComponent(path).path)
            return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
        }
        #expect(try mode("state") == 0o700)
        #expect(try mode("state/token") == 0o600)
        #expect(try mode("run") == 0o700)
        #expect(try mode("run/towd.sock") == 0o600)
        try await site.stop()
    }

    @Test(arguments: [0o755, 0o1777, 0o777] as [mode_t])
    func row127ADirectoryThatWasThereStaysAsItIs(open: mode_t) async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("towd-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: root) }
        let run = root.appendingPathComponent("run").path
        try FileManager.default.createDirectory(atPath: run, withIntermediateDirectories: true)
        chmod(run, open)
        func mode(_ path: String) -> mode_t {
            var status = stat()
            return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
        }
        guard open == 0o755 else {
            // A user with write access could replace the socket.
            await #expect(throws: TowlineError.self) { try await ServiceSite(root: root) }
            #expect(mode(run) == open)
            return
        }
        // A kill may have happened between creating the socket and renaming it.
        mkdir(run + "/.towd.sock", 0o777)
        let site = try await ServiceSite(root: root)
        #expect(mode(run) == open)
        #expect(mode(run + "/towd.sock") == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: run) == ["towd.sock"])
        #expect(try await site.ask("GET", "/health").status == 200)
        try await site.stop()
        #expect(try FileManager.default.contentsOfDirectory(atPath: run).isEmpty)
        withExtendedLifetime(site) {}
    }

    @Test func slowClientsAreSentAwayAndOthersServed() async throws {
        let site = try await ServiceSite {
            $0.headTimeout = .milliseconds(300)
            $0.bodyTimeout = .milliseconds(300)
            $0.idleTimeout = .milliseconds(300)
        }
        let heads = [
            "", "GET /", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
            "POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
            "GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        ]
        try await withThrowingTaskGroup { group in
            for head in heads {
                group.addTask {
                    let descriptor = try RawExchange.connect(.port(site.port))
                    RawExchange.write(Array(head.utf8), to: descriptor)
                    // The read ends when the service closes the connection. The socket's own timeout is much longer.
                    let clock = ContinuousClock()
                    let start = clock.now
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            _ = RawExchange.readAll(descriptor)
                            close(descriptor)
                            continuation.resume()
                        }
                    }
                    #expect(clock.now - start < .seconds(15), "\(head)")
                }
            }
            #expect(try await site.ask("GET", "/health").status == 200)
            try await group.waitForAll()
        }
        try await site.stop()
    }

    /// A page on another port of this machine can set a cookie of the same name (COOKIE below), and a proxy can send
    /// its own credentials. Any valid session or the valid token is sufficient. The token is not a session, and a
    /// session is not a token.
    @Test(
        arguments: [
            ("COOKIE=wrong; COOKIE=SESSION", nil, 200), ("COOKIE=SESSION; COOKIE=wrong", nil, 200),
            ("a=b;COOKIE=SESSION", nil, 200), ("COOKIE=SESSION", "Basic YTpi", 200),
            ("COOKIE=wrong", "Bearer TOKEN", 200),
            ("COOKIE=wrong; xCOOKIE=SESSION", nil, 401), ("COOKIE=", nil, 401), ("COOKIE=wrong", "Basic YTpi", 401),
            ("COOKIE=TOKEN", nil, 401), ("COOKIE=TOKEN; COOKIE=wrong", nil, 401), ("a=b", "Bearer SESSION", 401),
            ("towline=SESSION", nil, 401), ("towline-=SESSION", nil, 401),
        ] as [(String, String?, Int)])
    func anyCookieOfThatNameMayBeTheSession(_ cookie: String, _ authorization: String?, _ status: Int) async throws {
        let site = try await ServiceSite()
        let words = try await site.cookie().split(separator: "=")
        let (name, session) = (words[0], words[1])
        func filled(_ text: String) -> String {
            text.replacingOccurrences(of: "TOKEN", with: site.service.token.text)
                .replacingOccurrences(of: "SESSION", with: session).replacingOccurrences(of: "COOKIE", with: name)
        }
        var fields = ["Cookie": filled(cookie)]
        fields["Authorization"] = authorization.map { filled($0) }
        #expect(try await ask(site, "GET", "/api/v1/totals", fields, token: false).status == status)
        try await site.stop()
    }

    /// The body of a sign-in is limited, because a sign-in needs no token.
    @Test func aSignInIsSmall() async throws {
        let site = try await ServiceSite()
        for (size, status) in [(3000, 401), (5000, 413)] {
            let body = #"{"token":""# + String(repeating: "a", count: size) + #""}"#
            let answer = try await ask(site, "POST", "/api/v1/session", Self.json, body: body, token: false)
            #expect(answer.status == status)
        }
        try await site.stop()
    }

    /// One client cannot use all connections: its idle connections are closed, and the Unix socket has its own limit.
    @Test func idleConnectionsLockNobodyOut() async throws {
        // Event loops add connections in another order than the kernel accepts them. The share of strangers is larger
        // than that difference, as by default.
        let site = try await ServiceSite { $0.maximumConnections = 200 }
        let descriptors = try (0..<260).map { _ in try RawExchange.connect(.port(site.port)) }
        #expect(try await ask(site, "GET", "/api/v1/health").status == 200)
        #expect(try await site.ask("GET", "/health").status == 200)
        for descriptor in descriptors { close(descriptor) }
        try await site.stop()
    }

    /// Connections that send endless heads slowly, from the owner's address and without the token, exclude no other
    /// client. A connection that has sent the token stays open.
    @Test func slowConnectionsLockNobodyOut() async throws {
        let site = try await ServiceSite {
            $0.maximumConnections = 40
            $0.headTimeout = .seconds(120)
        }
        let head = "GET /api/v1/totals HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        let authorized = Array((head + "Authorization: Bearer \(site.service.token.text)\r\n\r\n").utf8)
        // Uses a separate thread, because the service needs the cooperative threads.
        func answer(_ descriptor: Int32) async -> String {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    RawExchange.write(authorized, to: descriptor)
                    var buffer = [UInt8](repeating: 0, count: 4096)
                    let count = max(0, read(descriptor, &buffer, buffer.count))
                    continuation.resume(returning: String(decoding: buffer.prefix(count), as: UTF8.self))
                }
            }
        }
        let owner = try RawExchange.connect(.port(site.port))
        #expect(await answer(owner).hasPrefix("HTTP/1.1 200"))
        var strangers: [Int32] = []
        for round in 0..<4 {
            for _ in 0..<10 {
                let descriptor = try RawExchange.connect(.port(site.port))
                RawExchange.write(Array((head + "X: ").utf8), to: descriptor)
                strangers.append(descriptor)
            }
            // The open connections send another byte.
            for descriptor in strangers { RawExchange.write([0x78], to: descriptor) }
            #expect(try await ask(site, "GET", "/api/v1/totals").status == 200, "round \(round)")
            #expect(await answer(owner).hasPrefix("HTTP/1.1 200"), "round \(round)")
        }
        for descriptor in strangers + [owner] { close(descriptor) }
        try await site.stop()
    }

    @Test func endlessHeadsAreCutOff() async throws {
        let site = try await ServiceSite()
        for line in [String(repeating: "x", count: 100_000), String(repeating: "X: y\r\n", count: 5000)] {
            let head = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nA: " + line
            let descriptor = try RawExchange.connect(.port(site.port))
            RawExchange.write(Array(head.utf8), to: descriptor)
            shutdown(descriptor, Int32(SHUT_WR))
            let answer = RawExchange.parse(RawExchange.readAll(descriptor))
            close(descriptor)
            #expect(answer.status == 0 || (400..<500).contains(answer.status))
        }
        #expect(try await site.ask("GET", "/health").status == 200)
        try await site.stop()
    }

    @Test func row125NoSecretComesBack() async throws {
        let canary = "c4nary-s3cret"
        let site = try await ServiceSite()
        let body: [String: Any] = [
            "url": "http://user:\(canary)@127.0.0.1:9/x?X-Amz-Signature=\(canary)&sig=\(canary)", "user": "u:\(canary)",
            "headers": [["name": "Authorization", "value": "Bearer \(canary)"], ["name": "Cookie", "value": canary]],
            "cookies": "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t\(canary)", "proxy": "http://u:\(canary)@127.0.0.1:9",
        ]
        let added = try await site.ask("POST", "/downloads", body)
        #expect(added.status == 201)
        let list = added.object["downloads"] as? [[String: Any]]
        let id = try #require(list?.first?["id"] as? String)
        try await site.wait(id, for: .waiting(.network))
        for path in ["/downloads", "/downloads/\(id)", "/downloads/\(id)/timeline", "/hosts", "/totals", "/settings"] {
            let answer = try await site.ask("GET", path)
            #expect(!String(decoding: answer.body, as: UTF8.self).contains(canary), "\(path)")
        }
        let wrong = try await site.ask("POST", "/downloads", body.merging(["nonsense": canary]) { $1 })
        #expect(!String(decoding: wrong.body, as: UTF8.self).contains(canary))
        let unusable = try await site.ask("POST", "/downloads", ["url": "ftp://user:\(canary)@h/"])
        #expect(unusable.status == 400)
        #expect(!String(decoding: unusable.body, as: UTF8.self).contains(canary))
        try await site.stop()
    }
}
