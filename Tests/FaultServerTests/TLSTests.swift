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

    @Test func theEndMayLackItsNotice() async throws {
        try await withCertificate { chain, options in
            try await withFile(.always(.closeWithoutNotify()), options: options) { server in
                #expect(await curl(server, "--cacert \(chain) 2>/dev/null").status == 56)
            }
            try await withFile(.always(.cutCloseDelimited()), options: options) { server in
                let result = await curl(server, "--cacert \(chain)")
                #expect(result.status == 0)
                #expect(result.output == "1.1 50000")
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
