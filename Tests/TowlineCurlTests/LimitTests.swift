import Glibc
import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// Limits of heads and of time.
    @Suite struct LimitTests {
        @Test(
            "A head has at most 5000 fields, 300 KiB and 20 interim heads before it",
            arguments: [
                (fields: 4999, size: 1, interim: 0, isTaken: true), (fields: 5000, size: 1, interim: 0, isTaken: false),
                (fields: 100, size: 3000, interim: 0, isTaken: true),
                (fields: 103, size: 3000, interim: 0, isTaken: false),
                (fields: 3, size: 100_000, interim: 0, isTaken: true),
                (fields: 4, size: 100_000, interim: 0, isTaken: false),
                // The longest line that libcurl 7.88 reads has 100 KiB.
                (fields: 1, size: 110_000, interim: 0, isTaken: false),
                (fields: 1, size: 200_000, interim: 0, isTaken: false),
                (fields: 1, size: 1, interim: 20, isTaken: true), (fields: 1, size: 1, interim: 21, isTaken: false),
            ])
        func headLimits(fields: Int, size: Int, interim: Int, isTaken: Bool) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                for _ in 0..<interim { connection.send("HTTP/1.1 102 Processing\r\n\r\n") }
                let field = "X: " + String(repeating: "x", count: size) + "\r\n"
                connection.send(response("body", fields: String(repeating: field, count: fields)))
                connection.waitForPeer()
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(describe(record.end) == (isTaken ? "delimited" : "headTooLarge"))
            #expect(record.heads.count == (isTaken ? 1 : 0))
        }

        @Test("Fields of interim heads count, and endless interim heads end")
        func endlessInterimHeads() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                while connection.send(
                    "HTTP/1.1 103 Early Hints\r\n" + String(repeating: "Link: </a>\r\n", count: 9) + "\r\n")
                {}
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.end?.failureKind == .headTooLarge)
        }

        @Test("Endless trailers end, and trailers are not fields of the head")
        func endlessTrailers() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n")
                while connection.send("X-Trailer: 1\r\n") {}
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.end?.failureKind == .headTooLarge)
            #expect(record.heads.first?.fields.has("X-Trailer") == false)
        }

        @Test("A head that trickles is timed as a whole", arguments: [true, false])
        func headTimeout(trickles: Bool) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nX: ")
                // A byte every 50 ms: the pace is the fault under test.
                while trickles, connection.send("x") { usleep(50_000) }
                connection.waitForPeer()
            }
            defer { server.close() }
            let clock = ContinuousClock.now
            let options = ConnectionOptions.with { $0.headTimeout = .milliseconds(400) }
            let record = await run(.make(server.url(), connection: options))
            #expect(record.end?.failureKind == .headTimedOut)
            #expect(clock.duration(to: .now) >= .milliseconds(400))
            #expect(clock.duration(to: .now) < .seconds(5))
        }

        @Test("The head's deadline ends once the head has arrived")
        func slowBody() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbody")
                // The body takes longer than the head may take.
                usleep(600_000)
                connection.send("body")
                connection.waitForPeer()
            }
            defer { server.close() }
            let options = ConnectionOptions.with { $0.headTimeout = .milliseconds(200) }
            let record = await run(.make(server.url(), connection: options))
            #expect(record.end?.framing == .delimited)
        }

        @Test("connectTimeout limits an unanswered TLS handshake")
        func connectTimeout() async {
            let server = ScriptedServer { connection, _ in connection.waitForPeer() }
            defer { server.close() }
            let options = ConnectionOptions.with { $0.connectTimeout = .milliseconds(300) }
            let record = await run(.make("https://127.0.0.1:\(server.port)/", connection: options))
            #expect(record.end?.failureKind == .connectTimedOut)
        }

        @Test("Refused connections, unknown names and broken handshakes have distinct failure kinds")
        func connectFailures() async {
            #expect(await run(.make("http://127.0.0.1:\(Loopback.freePort())/")).end?.failureKind == .connectFailed)
            #expect(await run(.make("http://no-such-host.invalid/")).end?.failureKind == .hostNotFound)
            let server = ScriptedServer { connection, _ in connection.send("HTTP/1.1 400 Bad\r\n\r\n") }
            defer { server.close() }
            #expect(await run(.make("https://127.0.0.1:\(server.port)/")).end?.failureKind == .tlsFailed)
        }

        @Test("A failure's message is a clear reason, followed by libcurl's details in parentheses")
        func messages() async {
            let port = Loopback.freePort()
            let refused = await run(.make("http://127.0.0.1:\(port)/")).end?.failureMessage ?? ""
            #expect(refused.hasPrefix("cannot connect to the server"), "\(refused)")
            #expect(refused.contains("(") && refused.contains("port \(port)") && refused.hasSuffix(")"), "\(refused)")
            let unknown = await run(.make("http://no-such-host.invalid/")).end?.failureMessage ?? ""
            #expect(unknown.hasPrefix("cannot resolve the host name of the server"), "\(unknown)")
            #expect(unknown.contains("no-such-host.invalid"), "\(unknown)")
        }

        @Test(
            "Requests that could break out of their line never reach the wire",
            arguments: [
                ("X\r\nY", "1"), ("X Y", "1"), ("", "1"), ("X:", "1"), ("X", "1\r\nY: 2"), ("X", "1\n"),
                ("X", "1\u{0}2"), ("X", "1\u{7F}"),
            ])
        func injection(name: String, value: String) async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let record = await run(.make(server.url("/"), [(name, value)]))
            #expect(record.end?.failureKind == .local)
            #expect(server.connectionCount == 0)
        }
    }
}
