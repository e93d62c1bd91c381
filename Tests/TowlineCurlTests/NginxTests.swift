import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// A real server: many attempts, TLS, HTTP/2.
    @Suite(.enabled(if: Programs.areThere(Programs.nginx, Programs.openssl))) struct NginxTests {
        @Test("A thousand attempts, sixteen at a time, use sixteen connections", arguments: [1, 3])
        func manyAttempts(engineThreads: Int) async throws {
            let nginx = try await Nginx()
            let transport = CurlTransport(engineThreads: engineThreads)
            await withTaskGroup(of: Int.self) { group in
                for index in 0..<1000 {
                    if index >= 16 { #expect(await group.next() == 10) }
                    group.addTask { await run(.make(nginx.url("small"), mayBeSmall: true), on: transport).body.count }
                }
            }
            await transport.shutdown()
            #expect(nginx.log.count == 1000)
            // With several threads, an attempt may start on another thread before the previous connection is idle.
            #expect(Set(nginx.log.map(\.connection)).count <= 16 * engineThreads)
        }

        @Test("A range over TLS with an authority of our own, and a resumed session")
        func tls() async throws {
            let nginx = try await Nginx()
            let options = ConnectionOptions.with { $0.certificateAuthorityFile = nginx.certificates.authority }
            let transport = CurlTransport()
            let url = nginx.url("small", certificate: "good")
            let record = await run(.make(url, [("Range", "bytes=2-4")], connection: options), on: transport)
            #expect(record.heads.first?.status == 206)
            #expect(record.body == Array("234".utf8))
            let held = RecordingReceiver(onHead: { _ in .pause })
            let request = AttemptRequest.make(url, connection: options)
            transport.start(request, receiver: held)
            await held.until { !$0.heads.isEmpty }
            #expect(await run(.make(url, connection: options), on: transport).end?.framing == .delimited)
            transport.proceed(request.id)
            _ = await held.finished()
            await transport.shutdown()
            #expect(Set(nginx.log.map(\.connection)).count == 2)
            #expect(nginx.log.contains { $0.isResumed })
        }

        @Test(
            "Certificates that must not be trusted are refused, and taken only if the user insists",
            arguments: ["self-signed", "expired", "other-host", "good"])
        func refusedCertificates(name: String) async throws {
            let nginx = try await Nginx()
            let url = nginx.url("small", certificate: name)
            // The system does not know the authority of "good", so its certificate is refused here.
            var options = ConnectionOptions()
            if name != "good" { options.certificateAuthorityFile = nginx.certificates.authority }
            #expect(await run(.make(url, connection: options)).end?.failureKind == .certificateRefused)
            options.allowsInsecure = true
            #expect(await run(.make(url, connection: options)).end?.framing == .delimited)
        }

        @Test("A connection that was made without checks is not used with them")
        func insecureIsApart() async throws {
            let nginx = try await Nginx()
            let transport = CurlTransport()
            let url = nginx.url("small", certificate: "self-signed")
            let insecure = ConnectionOptions.with { $0.allowsInsecure = true }
            #expect(await run(.make(url, connection: insecure), on: transport).end?.framing == .delimited)
            #expect(await run(.make(url), on: transport).end?.failureKind == .certificateRefused)
            await transport.shutdown()
        }

        @Test("TLS older than 1.2 is refused")
        func oldTLS() async throws {
            let nginx = try await Nginx()
            let options = ConnectionOptions.with { $0.certificateAuthorityFile = nginx.certificates.authority }
            let record = await run(.make(nginx.url("small", certificate: "old-tls"), connection: options))
            #expect(record.end?.failureKind == .tlsIncompatible)
        }

        @Test("HTTP/2: concurrent attempts have a connection each, and an idle one is reused")
        func http2() async throws {
            let nginx = try await Nginx()
            let options = ConnectionOptions.with { $0.certificateAuthorityFile = nginx.certificates.authority }
            let transport = CurlTransport()
            let url = nginx.url("large", certificate: "http2")
            // The attempts certainly run at the same time: each is paused until the other's head has arrived.
            let requests = [AttemptRequest.make(url, connection: options), .make(url, connection: options)]
            let receivers = requests.map { _ in RecordingReceiver(keepsBody: false, onHead: { _ in .pause }) }
            for (request, receiver) in zip(requests, receivers) { transport.start(request, receiver: receiver) }
            for receiver in receivers { await receiver.until { !$0.heads.isEmpty } }
            for request in requests { transport.proceed(request.id) }
            for receiver in receivers {
                let record = await receiver.finished()
                #expect(record.heads.first?.version == .http2)
                #expect(record.end?.framing == .delimited)
                expectInOrder(receiver)
            }
            let third = await run(.make(url, connection: options), on: transport)
            #expect(third.body.count == 8 << 20)
            await transport.shutdown()
            #expect(nginx.log.map(\.version) == ["HTTP/2.0", "HTTP/2.0", "HTTP/2.0"])
            #expect(Set(nginx.log.map(\.connection)).count == 2)
        }

        @Test("HTTP/2: pauses cost no byte, and http1 is obeyed if HTTP/2 is offered")
        func http2Pauses() async throws {
            let nginx = try await Nginx()
            var options = ConnectionOptions.with { $0.certificateAuthorityFile = nginx.certificates.authority }
            let url = nginx.url("large", certificate: "http2")
            let receiver = RecordingReceiver(onBody: { _, record in
                record.bodyCallCount % 10 == 9 ? .pauseFor(.milliseconds(1)) : .consumed
            })
            let record = await run(.make(url, connection: options), receiver)
            #expect(record.end?.framing == .delimited)
            #expect(record.body.count == 8 << 20)
            #expect(record.pauseCount > 10)
            options.httpProtocol = .http1
            #expect(await run(.make(url, connection: options)).heads.first?.version == .http1_1)
        }

        @Test("Files of the options that cannot be used are named before the first request")
        func unreadableFiles() async throws {
            let nginx = try await Nginx()
            let url = nginx.url("small")
            for options in [
                ConnectionOptions.with { $0.certificateAuthorityFile = "/nowhere/ca.pem" },
                .with { $0.cookieFile = "/nowhere/cookies" }, .with { $0.netrc = .file("/nowhere/netrc") },
            ] {
                let record = await run(.make(url, sendsCredentials: true, connection: options))
                let isForTLS = options.certificateAuthorityFile != nil
                #expect(record.end?.failureKind == (isForTLS ? .tlsFileUnusable : .local))
            }
            let junk = try nginx.folder.write("junk.pem", "no certificate")
            let options = ConnectionOptions.with { $0.certificateAuthorityFile = junk }
            let record = await run(.make(nginx.url("small", certificate: "good"), connection: options))
            #expect(record.end?.failureKind == .tlsFileUnusable)
        }
    }
}
