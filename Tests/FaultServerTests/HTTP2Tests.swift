import FaultServer
import Testing

@Suite struct HTTP2Tests {
    private var options: ServerOptions {
        var options = ServerOptions()
        options.http2 = true
        return options
    }

    private func curl(_ server: FaultServer, _ more: String = "") async -> (status: Int32, output: String) {
        let written = "-w '%{http_version} %{http_code} %{size_download}'"
        return await shell(
            "curl -sS -m 20 --http2-prior-knowledge -o /dev/null \(written) \(more) \(server.url("/file")) 2>&1")
    }

    @Test func curlGetsTheRightFile() async throws {
        // The length exceeds curl's initial window, so that flow control takes effect.
        let length: Int64 = 30_000_001
        try await withFile(length: length, options: options) { server in
            try await withDirectory { directory in
                let path = directory + "/file"
                let result = await shell(
                    "curl -sS -m 60 --http2-prior-knowledge -o \(path) -w '%{http_version}' \(server.url("/file"))")
                #expect(result.output == "2")
                #expect(result.status == 0)
                let mismatch = try FaultContent(seed: 1).firstMismatch(inFile: path, length: length)
                #expect(mismatch == nil)
                await server.log.allEnded()
                #expect(server.log.bodyBytesServed("/file") == length)
            }
        }
    }

    @Test func rangesAndHeads() async throws {
        try await withFile(options: options) { server in
            #expect(await curl(server, "-r 10-19").output == "2 206 10")
            #expect(await curl(server, "-I").output.hasSuffix("2 200 0"))
            #expect(await curl(server, "-r 100000-").output.hasPrefix("2 416"))
            #expect(server.log.requests.allSatisfy { $0.info.isHTTP2 })
        }
    }

    @Test func streamsBreak() async throws {
        try await withFile(length: 200_000, .always(.resetStream()), options: options) { server in
            let result = await curl(server)
            #expect(result.status == 92)
            #expect(result.output.contains("2 200 "))
            // The number of bytes that curl outputs before the reset is not defined.
            #expect(server.log.bodyBytesServed("/file") == 65_536)
        }
        try await withFile(.always(.shortBody()), options: options) { server in
            // The stream ends without an error before its Content-Length. curl exits with 18 or 92, by its version.
            let result = await curl(server)
            #expect([18, 92].contains(result.status))
        }
        try await withFile(.always(.goAwayAtOnce), options: options) { #expect(await curl($0).status != 0) }
        try await withFile(.always(.goAway()), options: options) { server in
            let result = await curl(server)
            #expect(result.status == 0)
            #expect(result.output == "2 200 100000")
        }
        try await withFile(.always(.stall()), options: options) { server in
            #expect(await curl(server, "-m 1").status == 28)
        }
    }

    @Test func bothProtocolsOnOnePort() async throws {
        try await withFile(options: options) { server in
            #expect(await RawClient.get(server).isContent(0..<100_000))
            #expect(await curl(server).output == "2 200 100000")
        }
    }
}
