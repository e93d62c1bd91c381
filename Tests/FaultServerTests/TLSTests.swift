import FaultServer
import Testing

@Suite struct TLSTests {
    private func withCertificate<Result>(
        onlyOld: Bool = false, _ body: (String, ServerOptions) async throws -> Result
    ) async throws -> Result {
        try await withDirectory { directory in
            let (chain, key) = (directory + "/chain.pem", directory + "/key.pem")
            let made = await shell(
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout \(key) -out \(chain)"
                    + " -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null")
            #expect(made.status == 0)
            var options = ServerOptions()
            options.tls = ServerOptions.TLS(certificateChain: chain, privateKey: key, onlyOldVersions: onlyOld)
            return try await body(chain, options)
        }
    }

    private func curl(_ server: FaultServer, _ more: String) async -> (status: Int32, output: String) {
        await shell("curl -sS -m 20 -o /dev/null -w '%{http_version} %{size_download}' \(more) \(server.url("/file"))")
    }

    @Test func servesOverTLS() async throws {
        try await withCertificate { chain, options in
            var options = options
            options.http2 = true
            try await withFile(length: 3_000_000, options: options) { server in
                #expect(await curl(server, "--http1.1 --cacert \(chain)").output == "1.1 3000000")
                #expect(await curl(server, "--http2 --cacert \(chain)").output == "2 3000000")
                #expect(await curl(server, "2>/dev/null").status == 60)
                #expect(server.log.requests.map(\.info.isTLS) == [true, true])
            }
        }
    }

    @Test func streamsShareAConnection() async throws {
        try await withCertificate { chain, options in
            var options = options
            options.http2 = true
            try await withServer(["/many/*": Resource(length: 300_000)], options: options) { server in
                let result = await shell(
                    "curl -sS -m 60 --http2 -Z --cacert \(chain) -o /dev/null '\(server.url("/many/"))[1-20]' 2>/dev/null"
                )
                #expect(result.status == 0)
                #expect(server.log.requests.count == 20)
                await server.log.allEnded()
                #expect(server.log.records.bodyBytesServed == 6_000_000)
                #expect(server.log.connections.count < 20)
            }
        }
    }

    /// A Python program that reads to the end. Python can distinguish an end without close_notify from an orderly end
    /// (with OpenSSL 3 only if the option is cleared). curl 7.88 treats both as the end of a body.
    private static let reader = """
        import socket, ssl, sys
        context = ssl.create_default_context(cafile=sys.argv[1])
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        plain = socket.create_connection(("127.0.0.1", int(sys.argv[2])), 20)
        tls = context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False)
        tls.sendall(b"GET /file HTTP/1.1\\r\\n\\r\\n")
        try:
            while tls.recv(65536): pass
            print("orderly")
        except ssl.SSLError as error: print("ragged" if "EOF" in str(error).upper() else error)
        """

    @Test func theEndMayLackItsNotice() async throws {
        try await withCertificate { chain, options in
            for (fault, end) in [(Fault.closeWithoutNotify(), "ragged\n"), (.cutCloseDelimited(), "orderly\n")] {
                try await withFile(.always(fault), options: options) { server in
                    let result = await shell("python3 -c '\(TLSTests.reader)' \(chain) \(server.port)")
                    #expect(result.output == end)
                    #expect(server.log.bodyBytesServed("/file") == 50_000)
                }
            }
        }
    }

    @Test func oldVersionsAlone() async throws {
        try await withCertificate(onlyOld: true) { chain, options in
            try await withFile(options: options) { server in
                #expect(await curl(server, "--cacert \(chain) 2>/dev/null").status == 35)
            }
        }
    }
}
