import Glibc
import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// Tests proxies, and the effect of the user's credentials.
    @Suite struct ProxyTests {
        private static func options(_ proxy: String) -> ConnectionOptions { .with { $0.proxy = proxy } }

        @Test("An http proxy, with its own credentials or without", .enabled(if: Programs.areThere(Programs.tinyproxy)))
        func httpProxy() async throws {
            let proxy = try await ProxyProgram.tinyproxy(credentials: ("user", "secret"))
            defer { withExtendedLifetime(proxy) {} }
            let port = proxy.port
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let good = Self.options("http://user:secret@127.0.0.1:\(port)")
            #expect(await run(.make(server.url(), connection: good)).body == Array("body".utf8))
            #expect(server.requestHeads.count == 1)
            #expect(server.requestHeads.first?.contains("Proxy-Authorization") == false)
            for wrong in ["http://127.0.0.1:\(port)", "http://user:wrong@127.0.0.1:\(port)"] {
                // tinyproxy answers 407 without credentials and 401, like an origin, to a wrong password.
                let record = await run(.make(server.url(), connection: Self.options(wrong)))
                #expect(describe(record.end) == "proxyUnauthorized" || record.heads.first?.status == 401)
                // The same through a tunnel, which https uses.
                let tunnel = await run(.make("https://127.0.0.1:\(server.port)/", connection: Self.options(wrong)))
                #expect(["proxyUnauthorized", "proxyFailed"].contains(describe(tunnel.end)))
            }
            #expect(server.requestHeads.count == 1)
        }

        @Test(
            "A tunnel through a proxy reaches TLS, and only with valid credentials",
            .enabled(if: Programs.areThere(Programs.tinyproxy, Programs.nginx, Programs.openssl)))
        func tunnel() async throws {
            let proxy = try await ProxyProgram.tinyproxy(credentials: ("user", "secret"))
            defer { withExtendedLifetime(proxy) {} }
            let port = proxy.port
            let nginx = try await Nginx()
            let transport = CurlTransport()
            var options = Self.options("http://user:secret@127.0.0.1:\(port)")
            options.certificateAuthorityFile = nginx.certificates.authority
            let url = nginx.url("small", certificate: "good")
            let record = await run(.make(url, connection: options), on: transport)
            #expect(record.body == Array("0123456789".utf8))
            #expect(record.heads.count == 1)
            // The tunnel is idle now; a request without the password must not reuse it.
            options.proxy = "http://127.0.0.1:\(port)"
            #expect(describe(await run(.make(url, connection: options), on: transport).end) == "proxyUnauthorized")
            await transport.shutdown()
        }

        @Test("Unreachable proxies", arguments: ["http", "https", "socks5", "socks5h", "socks4"])
        func absentProxy(scheme: String) async {
            let options = Self.options("\(scheme)://127.0.0.1:\(Loopback.freePort())")
            #expect(describe(await run(.make("http://127.0.0.1:1/", connection: options)).end) == "proxyFailed")
            let unknown = Self.options("\(scheme)://no-such-proxy.invalid:1")
            #expect(describe(await run(.make("http://127.0.0.1:1/", connection: unknown)).end) == "proxyFailed")
        }

        @Test("Proxies of other kinds and invalid URLs are refused", arguments: ["ftp://127.0.0.1:1", "http://u:p@:1"])
        func otherProxies(proxy: String) async {
            let record = await run(.make("http://127.0.0.1:1/", connection: Self.options(proxy)))
            #expect(describe(record.end) == "proxyUnusable")
        }

        @Test("A proxy that closes each connection is named, not the server", arguments: ["http", "https", "socks5"])
        func closingProxy(scheme: String) async {
            let proxy = ScriptedServer { connection, _ in connection.finishSending() }
            defer { proxy.close() }
            let options = Self.options("\(scheme)://u:canary@127.0.0.1:\(proxy.port)")
            let end = await run(.make("https://127.0.0.1:1/", connection: options)).end
            #expect(describe(end) == "proxyFailed")
            guard case .failed(let failure) = end else { return }
            #expect(failure.message.contains("proxy") && !failure.message.contains("canary"), "\(failure.message)")
        }

        @Test("SOCKS5, names resolved here or there", .enabled(if: Programs.areThere(Programs.danted)))
        func socks() async throws {
            let blocked = Loopback.freePort()
            let proxy = try await ProxyProgram.danted(blocked: blocked)
            defer { withExtendedLifetime(proxy) {} }
            let port = proxy.port
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            for scheme in ["socks5", "socks5h"] {
                let options = Self.options("\(scheme)://127.0.0.1:\(port)")
                #expect(await run(.make(server.url(), connection: options)).body == Array("body".utf8))
                let refused = await run(.make("http://127.0.0.1:\(Loopback.freePort())/", connection: options))
                #expect(describe(refused.end) == "connectFailed")
                let forbidden = await run(.make("http://127.0.0.1:\(blocked)/", connection: options))
                #expect(describe(forbidden.end) == "proxyFailed")
            }
        }

        @Test("The environment names the proxy if the options do not")
        func environment() async {
            let proxy = ScriptedServer(responses: { _ in response("by proxy") })
            let server = ScriptedServer(responses: { _ in response("directly") })
            defer {
                proxy.close()
                server.close()
            }
            setenv("http_proxy", "http://127.0.0.1:\(proxy.port)", 1)
            #expect(await run(.make(server.url())).body == Array("by proxy".utf8))
            #expect(proxy.requestHeads.first?.hasPrefix("GET \(server.url()) HTTP/1.1\r\n") == true)
            setenv("no_proxy", "127.0.0.1", 1)
            #expect(await run(.make(server.url())).body == Array("directly".utf8))
            setenv("http_proxy", "http://127.0.0.1:\(Loopback.freePort())", 1)
            setenv("no_proxy", "", 1)
            let down = await run(.make(server.url()))
            #expect(describe(down.end) == "proxyFailed")
            if case .failed(let failure) = down.end { #expect(failure.message.contains("http_proxy")) }
            // An explicitly named proxy outranks no_proxy.
            setenv("no_proxy", "*", 1)
            let options = Self.options("http://127.0.0.1:\(proxy.port)")
            #expect(await run(.make(server.url(), connection: options)).body == Array("by proxy".utf8))
            unsetenv("http_proxy")
            unsetenv("no_proxy")
        }
    }

    /// Passwords and cookies.
    @Suite struct CredentialTests {
        @Test("user and netrc cause basic authentication, and only if it is allowed")
        func passwords() async throws {
            let folder = try TemporaryFolder()
            let netrc = try folder.write("netrc", "machine 127.0.0.1 login alice password a\n")
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let cases: [(ConnectionOptions, Bool, String?)] = [
                (.with { $0.user = "bob:b" }, true, "Ym9iOmI="),
                (.with { $0.netrc = .file(netrc) }, true, "YWxpY2U6YQ=="),
                (.with { $0.user = "bob:b" }, false, nil), (.with { $0.netrc = .file(netrc) }, false, nil),
            ]
            for (options, isAllowed, expected) in cases {
                _ = await run(.make(server.url(), sendsCredentials: isAllowed, connection: options))
                let lines = server.requestHeads.last?.split(separator: "\r\n").filter { $0.hasPrefix("Authorization:") }
                #expect(lines == (expected.map { ["Authorization: Basic \($0)"] } ?? []))
            }
            let bearer = AttemptRequest.make(
                server.url(), [("Authorization", "Bearer x")], sendsCredentials: true,
                connection: .with { $0.user = "bob:b" })
            _ = await run(bearer)
            let lines = server.requestHeads.last?.split(separator: "\r\n").filter { $0.hasPrefix("Authorization:") }
            #expect(lines == ["Authorization: Bearer x"])
        }

        @Test("A 401 is an answer like any other: no further request is sent")
        func unauthorized() async {
            let server = ScriptedServer(responses: { _ in
                response("no", status: "401 Unauthorized", fields: "WWW-Authenticate: Basic realm=\"x\"\r\n")
            })
            defer { server.close() }
            let options = ConnectionOptions.with { $0.user = "bob:b" }
            let record = await run(.make(server.url(), sendsCredentials: true, connection: options))
            #expect(record.heads.map(\.status) == [401])
            #expect(record.body == Array("no".utf8))
            #expect(server.requestHeads.count == 1)
        }

        @Test("Cookies are sent to their own host and path, change with responses, and the file stays unchanged")
        func cookies() async throws {
            let folder = try TemporaryFolder()
            let text = """
                # Netscape HTTP Cookie File
                127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tfirst\tfile
                127.0.0.1\tFALSE\t/deep\tFALSE\t4102444800\tdeep\tfile
                other.example\tFALSE\t/\tFALSE\t4102444800\tother\tfile

                """
            let file = try folder.write("cookies", text)
            let field = "Set-Cookie: first=server; Path=/\r\n"
            let server = ScriptedServer(responses: { _ in response("body", fields: field) })
            defer { server.close() }
            let options = ConnectionOptions.with { $0.cookieFile = file }
            let transport = CurlTransport()
            func cookie(_ path: String, isAllowed: Bool = true) async -> String? {
                _ = await run(.make(server.url(path), sendsCredentials: isAllowed, connection: options), on: transport)
                let lines = server.requestHeads.last?.split(separator: "\r\n") ?? []
                return lines.first { $0.hasPrefix("Cookie:") }.map { String($0.dropFirst(8)) }
            }
            #expect(await cookie("/") == "first=file")
            #expect(await cookie("/") == "first=server")
            #expect(await cookie("/deep/er") == "deep=file; first=server")
            // Cookies that the server set belong to the server.
            #expect(await cookie("/deep", isAllowed: false) == "first=server")
            await transport.shutdown()
            #expect(folder.read("cookies") == text)
        }
    }
}
