import Foundation
import Synchronization
import Testing
import Towline
@testable import TowlineService

/// Tests of signing in and out on the web page.
@Suite struct SessionTests {
    /// Sends a request that needs a session, and returns the status.
    private func status(_ site: ServiceSite, _ cookie: String) async throws -> Int {
        try await site.askOverTCP("GET", "/totals", ["Cookie": cookie]).status
    }

    /// Returns the name and the value of a cookie.
    private static func split(_ cookie: String) throws -> (name: String, value: String) {
        let equals = try #require(cookie.firstIndex(of: "="))
        return (String(cookie[..<equals]), String(cookie[cookie.index(after: equals)...]))
    }

    /// A browser keeps one cookie of a name for all ports of a host.
    @Test func twoServicesOfAHostHaveCookiesOfDifferentNames() async throws {
        let sites = [try await ServiceSite(), try await ServiceSite()]
        var jar: [String: String] = [:]
        for site in sites {
            let cookie = try Self.split(try await site.cookie(["Cookie": Self.field(jar)]))
            jar[cookie.name] = cookie.value
        }
        for site in sites { #expect(try await status(site, Self.field(jar)) == 200) }
        let answer = try await sites[0].askOverTCP("DELETE", "/session", ["Cookie": Self.field(jar)])
        #expect(answer.status == 204)
        #expect(try await status(sites[0], Self.field(jar)) == 401)
        #expect(try await status(sites[1], Self.field(jar)) == 200)
        for site in sites { try await site.stop() }
        // The name stays after a restart.
        let again = try await ServiceSite(root: sites[1].root)
        #expect(try await status(again, Self.field(jar)) == 200)
        #expect(jar.keys.contains(try Self.split(try await again.cookie()).name))
        try await again.stop()
        withExtendedLifetime(sites) {}
    }

    /// Returns the value of the header field `Cookie` that a browser with these cookies sends.
    private static func field(_ jar: [String: String]) -> String {
        jar.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
    }

    private func file(_ site: ServiceSite) -> URL { site.root.appendingPathComponent("state/sessions") }

    @Test func aSignInIsASessionOfItsOwn() async throws {
        let site = try await ServiceSite()
        let field = try await site.signIn()
        for part in ["; Path=/", "; Max-Age=2592000", "; HttpOnly", "; SameSite=Strict"] {
            #expect(field.contains(part), "\(part)")
        }
        let cookie = String(field.prefix { $0 != ";" })
        let (name, value) = try Self.split(cookie)
        #expect(cookie.wholeMatch(of: /towline-[0-9a-f]{8}=[0-9a-f]{64}/) != nil)
        #expect(!site.service.token.text.contains(name.suffix(8)) && !value.contains(name.suffix(8)))
        #expect(!cookie.contains(site.service.token.text))
        #expect(try await status(site, cookie) == 200)
        #expect(try await site.cookie() != cookie)
        #expect(try await status(site, cookie) == 200, "another browser signed in")
        #expect(try await status(site, "\(name)=\(site.service.token.text)") == 401, "the token is no session")
        let attributes = try FileManager.default.attributesOfItem(atPath: file(site).path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        try await site.stop()
    }

    /// A second sign-in of the same browser ends its first session.
    @Test func aSecondSignInEndsTheFirst() async throws {
        let site = try await ServiceSite()
        let first = try await site.cookie()
        let second = try await site.cookie(["Cookie": first])
        #expect(try await status(site, first) == 401)
        #expect(try await status(site, second) == 200)
        // A sign-in with a wrong token ends no session.
        let answer = try await site.askOverTCP("POST", "/session", ["Cookie": second], body: #"{"token":"no"}"#)
        #expect(answer.status == 401)
        #expect(try await status(site, second) == 200)
        try await site.stop()
    }

    @Test func signingOutEndsThisSessionOnly() async throws {
        let site = try await ServiceSite()
        let (own, other) = (try await site.cookie(), try await site.cookie())
        // Another program on this machine may have set a cookie of the same name, which the browser sends first.
        let name = try Self.split(own).name
        let foreign = "\(name)=wrong; "
        #expect(try await status(site, foreign + own) == 200)
        let unknown = try await site.askOverTCP("DELETE", "/session", ["Cookie": "\(name)=wrong"])
        #expect(unknown.status == 204)
        #expect(try await status(site, own) == 200)
        // A page of another site cannot sign the owner out.
        let across = ["Cookie": own, "Origin": "http://evil.test"]
        #expect(try await site.askOverTCP("DELETE", "/session", across).status == 403)
        #expect(try await status(site, own) == 200)
        let answer = try await site.askOverTCP("DELETE", "/session", ["Cookie": foreign + own])
        #expect(answer.status == 204)
        let field = try #require(answer.fields["set-cookie"])
        #expect(field.hasPrefix("\(name)=; Path=/; Max-Age=0;"))
        #expect(try await status(site, own) == 401)
        #expect(try await status(site, foreign + own) == 401)
        #expect(try await status(site, other) == 200)
        // A browser that is already signed out can sign out again.
        #expect(try await site.askOverTCP("DELETE", "/session", ["Cookie": own]).status == 204)
        #expect(try await site.askOverTCP("DELETE", "/session").status == 204)
        try await site.stop()
        let again = try await ServiceSite(root: site.root)
        #expect(try await status(again, own) == 401)
        #expect(try await status(again, other) == 200)
        try await again.stop()
        withExtendedLifetime(site) {}
    }

    @Test func sessionsOutliveARestartAndEndWithTheToken() async throws {
        let site = try await ServiceSite()
        let cookie = try await site.cookie()
        try await site.stop()
        let second = try await ServiceSite(root: site.root)
        #expect(try await status(second, cookie) == 200)
        try await second.stop()
        // Without the token file, the service creates another token.
        try FileManager.default.removeItem(at: site.root.appendingPathComponent("state/token"))
        let third = try await ServiceSite(root: site.root)
        #expect(third.service.token.text != site.service.token.text)
        #expect(try await status(third, cookie) == 401)
        #expect(!FileManager.default.fileExists(atPath: file(site).path))
        let fresh = try await third.cookie()
        #expect(try await status(third, fresh) == 200)
        #expect(try await status(third, cookie) == 401)
        try await third.stop()
        withExtendedLifetime((site, second)) {}
    }

    private func signIn(_ site: ServiceSite, code: String) async throws -> RawExchange.Answer {
        try await site.askOverTCP("POST", "/session", body: #"{"code":"\#(code)"}"#)
    }

    @Test func aCodeSignsInOnce() async throws {
        let site = try await ServiceSite()
        #expect(try await site.askOverTCP("POST", "/session/codes").status == 401)
        let made = try await site.ask("POST", "/session/codes")
        #expect(made.status == 201)
        let code = try #require(made.object["code"] as? String)
        #expect(code != site.service.token.text)
        let answer = try await signIn(site, code: code)
        #expect(answer.status == 204)
        let cookie = try #require(answer.fields["set-cookie"]).prefix { $0 != ";" }
        #expect(try await status(site, String(cookie)) == 200)
        let second = try await signIn(site, code: code)
        #expect(second.status == 401)
        #expect(second.fields["set-cookie"] == nil)
        #expect((second.object["detail"] as? String)?.contains("tow page") == true)
        #expect(try await signIn(site, code: site.service.token.text).status == 401, "the token is no code")
        for body in [#"{}"#, #"{"code":"x","token":"y"}"#, #"{"code":null}"#] {
            #expect(try await site.askOverTCP("POST", "/session", body: body).status == 400, "\(body)")
        }
        try await site.stop()
    }

    @Test func aCodeEndsAfterAnHour() {
        let time = Mutex(Date(timeIntervalSince1970: 1_000_000))
        let codes = SignInCodes { time.withLock(\.self) }
        let (first, second) = (codes.make(), codes.make())
        #expect(first.expiresAt == 1_003_600_000)
        time.withLock { $0 += 3599 }
        #expect(codes.use(first.code))
        time.withLock { $0 += 1 }
        #expect(!codes.use(second.code))
        let many = (0...SignInCodes.maximumCount).map { _ in codes.make().code }
        #expect(!codes.use(many[0]) && codes.use(many[1]))
    }

    /// The page names the file to a browser on this machine only.
    @Test func thePathOfTheTokenFileIsToldToThisMachine() async throws {
        let site = try await ServiceSite { $0.hostNames = ["nas.example"] }
        let path = site.root.appendingPathComponent("state/token").path
        func told(_ fields: [String: String]) async throws -> String? {
            try await site.askOverTCP("GET", "/session", fields).object["tokenFile"] as? String
        }
        #expect(try await told(["Host": "127.0.0.1"]) == path)
        #expect(try await told(["Host": "localhost:6880"]) == path)
        #expect(try await told(["Host": "nas.example"]) == nil)
        for name in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"] {
            #expect(try await told(["Host": "127.0.0.1", name: "192.0.2.1"]) == nil, "\(name)")
        }
        try await site.stop()
    }

    /// The old token and the sessions, whose file other users could probably read too, are worth nothing afterwards.
    @Test(arguments: [0o640, 0o604] as [mode_t]) func aTokenThatOthersCanReadIsReplaced(_ mode: mode_t) async throws {
        let first = try await ServiceSite()
        let cookie = try await first.cookie()
        let old = first.service.token
        #expect(old.notice == nil)
        try await first.stop()
        let path = first.root.appendingPathComponent("state/token").path
        for exposed in [path, file(first).path] { chmod(exposed, mode) }
        let site = try await ServiceSite(root: first.root)
        #expect(site.service.token.text != old.text)
        #expect(site.service.token.notice?.contains(path) == true)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == site.service.token.text + "\n")
        #expect(try await status(site, cookie) == 401)
        try await site.stop()
        let third = try await ServiceSite(root: first.root)
        #expect(third.service.token.text == site.service.token.text && third.service.token.notice == nil)
        try await third.stop()
    }

    @Test func aCookieOfATLSProxyIsSecure() async throws {
        let site = try await ServiceSite { $0.hostNames = ["nas.example"] }
        let origins: [(String?, Bool)] = [("https://nas.example", true), ("http://nas.example", false), (nil, false)]
        for (origin, isSecure) in origins {
            var fields = ["Host": "nas.example"]
            fields["Origin"] = origin
            #expect(try await site.signIn(fields).hasSuffix("; Secure") == isSecure, "\(origin ?? "no origin")")
            let answer = try await site.askOverTCP("DELETE", "/session", fields)
            #expect(answer.fields["set-cookie"]?.hasSuffix("; Secure") == isSecure)
        }
        let refused = try await site.askOverTCP(
            "POST", "/session", ["Host": "127.0.0.1", "Origin": "https://127.0.0.1"],
            body: #"{"token":"\#(site.service.token.text)"}"#)
        #expect(refused.status == 403)
        #expect(refused.fields["set-cookie"] == nil)
        try await site.stop()
    }

    @Test(arguments: [0o640, 0o604] as [mode_t]) func sessionsThatOthersCanReadAreRefused(_ mode: mode_t) async throws {
        let site = try await ServiceSite()
        _ = try await site.cookie()
        try await site.stop()
        chmod(file(site).path, mode)
        let error = await #expect(throws: TowlineError.self) { try await ServiceSite(root: site.root) }
        #expect(error?.code == .diskPermission)
        #expect(error?.message.contains("state/sessions") == true)
    }
}

/// Tests of the list of sessions and its file.
@Suite struct SessionListTests {
    /// A temporary state directory for a test.
    private final class Place {
        let directory: URL
        let token: AccessToken

        init() throws {
            directory = FileManager.default.temporaryDirectory.appendingPathComponent("towd-" + UUID().uuidString)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            token = try AccessToken(in: directory)
        }

        deinit { try? FileManager.default.removeItem(at: directory) }

        var file: URL { directory.appendingPathComponent(SessionList.fileName) }

        func list() throws -> SessionList { try SessionList(in: directory, for: token) }

        /// Writes the session file with valid or invalid text.
        func write(_ text: String) throws {
            try Data(text.utf8).write(to: file)
            chmod(file.path, 0o600)
        }
    }

    @Test func theOldestOfTooManyGiveWay() throws {
        let place = try Place()
        let list = try place.list()
        let values = (0..<SessionList.maximumCount + 2).map { _ in list.start() }
        #expect(Set(values).count == values.count)
        let expected = [false, false] + Array(repeating: true, count: SessionList.maximumCount)
        #expect(values.map { list.contains($0) } == expected)
        let read = try place.list()
        #expect(values.map { read.contains($0) } == expected)
        // The order is the order of the file, also after a restart.
        let newest = read.start()
        #expect(!read.contains(values[2]) && read.contains(values[3]) && read.contains(newest))
    }

    @Test func endedSessionsAreDropped() throws {
        let place = try Place()
        let (past, future) = (String(repeating: "a", count: 64), String(repeating: "b", count: 64))
        let now = Int(Date().timeIntervalSince1970)
        try place.write("\(place.token.text) 0123abcd\n\(past) \(now - 1)\n\(future) \(now + 60)\n")
        let list = try place.list()
        #expect(!list.contains(past) && list.contains(future) && list.cookieName == "towline-0123abcd")
        let value = list.start()
        let text = try String(contentsOf: place.file, encoding: .utf8)
        #expect(!text.contains(past) && text.contains(future) && text.contains(value))
    }

    /// Browsers must sign in again, and the service starts.
    @Test func aDamagedFileHasNoSessions() throws {
        let place = try Place()
        let session = String(repeating: "c", count: 64)
        let end = Int(Date().timeIntervalSince1970) + 60
        let line = "\(session) \(end)"
        let token = place.token.text
        for text in [
            "", "\n", "\(line)\n", "\(token.dropLast()) 0123abcd\n\(line)\n", "\n\(line)\n", "\(token)\n\(line)\n",
            "\(token) 0123abc\n\(line)\n", "\(token) 0123ABCD\n\(line)\n", "\(token) 0123abc;\n\(line)\n",
        ] {
            try place.write(text)
            #expect(try !place.list().contains(session))
            #expect(!FileManager.default.fileExists(atPath: place.file.path), "\(text)")
        }
        for other in [session, "\(session) x", "\(session)0 \(end)", "\(line) \(end)", "\(line)x", "\u{FF}"] {
            try place.write("\(token) 0123abcd\n\(other)\n")
            let list = try place.list()
            #expect(!list.contains(session) && !list.contains(""))
            let value = list.start()
            #expect(try place.list().contains(value))
        }
    }

    /// Sessions then end with the process, and an ended session does not become valid again.
    @Test func aFileThatCannotBeWrittenIsRemoved() throws {
        let place = try Place()
        let list = try place.list()
        let (first, second) = (list.start(), list.start())
        // A directory has the name of the temporary file.
        let obstacle = place.file.path + ".new"
        try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
        let third = list.start()
        #expect(list.contains(third))
        #expect(try !place.list().contains(third))
        try list.end([first[...]])
        #expect(!list.contains(first) && list.contains(second) && list.contains(third))
        #expect(try !place.list().contains(first))
        #expect(!FileManager.default.fileExists(atPath: place.file.path))
    }
}
