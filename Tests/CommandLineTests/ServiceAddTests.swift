import FaultServer
import Foundation
import Testing

/// Tests the requests of `tow add` and the answers of `tow limit`.
struct ServiceAddTests {
    /// Signed links have thousands of bytes, and the service limits the size of a request.
    @Test(.timeLimit(.minutes(2))) func manyLongLinksAreAllAdded() async throws {
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        let signature = String(repeating: "s", count: 2000)
        let links = (0..<1100).map { "http://127.0.0.1:9/\($0)?signature=\(signature)\n" }.joined()
        try Data(links.utf8).write(to: directory.file("links"))
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add", "--paused", "--json", "-i", directory.path("links")])
        #expect(added.status == 0, "\(added.stderr)")
        #expect(added.text.split(separator: "\n").count == 1100)
        service.kill()
    }

    /// A copied command gives its link, and none of its secrets.
    @Test(.timeLimit(.minutes(2))) func textOnStandardInputGivesItsLinks() async throws {
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        #expect(try await service.tow(["list"]).status == 0)
        let pipe = Pipe()
        let text = "two files\ncurl http://127.0.0.1:9/a \\\n -H 'X-Key: CANARY'\n**http://127.0.0.1:9/b.zip**\n"
        try pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try pipe.fileHandleForWriting.close()
        let added = try await CommandRun(
            ["add", "--paused", "--json", "-i", "-"] + service.options, input: pipe.fileHandleForReading
        ).finish()
        #expect(added.status == 0, "\(added.stderr)")
        #expect(added.text.contains(#""http://127.0.0.1:9/a""#) && added.text.contains(#""http://127.0.0.1:9/b.zip""#))
        #expect(added.text.split(separator: "\n").count == 2)
        #expect(added.stderr.contains("tow: standard input, line 1: no link in 'two files'\n"))
        #expect(added.stderr.contains("the headers of the command are not sent: X-Key."), "\(added.stderr)")
        #expect(!added.stderr.contains("CANARY"))
        service.kill()
    }

    /// `tow add` starts the service with only the state directory.
    @Test(.timeLimit(.minutes(2))) func theDownloadsDirectoryIsRemembered() async throws {
        let server = try await FaultServer.start(["/a.bin": Resource(length: 3 << 20, seed: 7)])
        let directory = try TestDirectory()
        let service = try ServiceProcess(directory)
        #expect(try await service.tow(["list"]).status == 0)
        service.kill()
        try service.start(namesDownloads: false)
        #expect(try await service.tow(["list"]).status == 0)
        let added = try await service.tow(["add", server.url("/a.bin")])
        #expect(added.status == 0, "\(added.stderr)")
        let file = directory.path("downloads/a.bin")
        let end = ContinuousClock.now + .seconds(60)
        while !FileManager.default.fileExists(atPath: file), ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: file, length: 3 << 20) == nil)
        service.kill()
        await server.stop()
    }

    /// Without towd, the message names a make target that exists and installs it.
    @Test func whereThereIsNoServiceTheWayToItIsNamed() async throws {
        let directory = try TestDirectory()
        let program = directory.file("tow")
        // Another process copies the program: a child that starts meanwhile would keep the copy open for writing
        // (ETXTBSY).
        let original = CommandRun.products.appendingPathComponent("tow").path
        _ = try await CommandRun([original, program.path], program: URL(fileURLWithPath: "/bin/cp")).finish()
        let state = ["HOME": directory.url.path, "XDG_RUNTIME_DIR": directory.url.path]
        let result = try await CommandRun(["add", "http://127.0.0.1:9/a"], environment: state, program: program)
            .finish()
        #expect(result.status == 1, "\(result.stderr)")
        let target = try #require(result.stderr.split(separator: "'").first { $0.hasPrefix("make ") }).dropFirst(5)
        let makefile = try String(
            contentsOf: URL(fileURLWithPath: #filePath + "/../../../Makefile").standardized, encoding: .utf8)
        let recipe = try #require(makefile.components(separatedBy: "\n\(target):").dropFirst().first)
        #expect(recipe.prefix(300).contains("bin/towd"), "\(target)")
    }

    /// `tow` reads the files of its options, and `towd` gets only what belongs to the server of the URL.
    @Test(.timeLimit(.minutes(2))) func optionsOfARequestReachTheServer() async throws {
        let server = try await FaultServer.start(["/a.bin": Resource(length: 3 << 20, seed: 7, rate: 3 << 20)])
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        _ = try await service.tow(["list"])
        try Data("machine 127.0.0.1 login ann password CANARY\nmachine b.test login o password OTHER\n".utf8)
            .write(to: place.file("netrc"))
        let cookies = ["127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t1", "b.test\tFALSE\t/\tFALSE\t0\tid\tOTHER"]
        try Data(cookies.joined(separator: "\n").utf8).write(to: place.file("cookies"))
        let added = try await service.tow([
            "add", server.url("/a.bin"), "-x4", "--sequential", "--no-proxy", "--netrc-file", place.path("netrc"),
            "--cookies", place.path("cookies"), "--max-tries", "5", "--retry-wait", "0.5", "--max-wait", "60",
            "--retry-on", "404", "--max-redirects", "0", "--allow-downgrade", "--http1", "--max-size", "4M",
            "--stall-timeout", "9",
        ])
        #expect(added.status == 0, "\(added.stderr)")
        await server.log.wait { $0.requests.first?.ended != nil }
        let requests = server.log.requests
        #expect(requests.count == 1)
        #expect(requests[0].info.field("Authorization") == "Basic " + Data("ann:CANARY".utf8).base64EncodedString())
        #expect(requests[0].info.field("Cookie") == "id=1")
        let files = try FileManager.default.contentsOfDirectory(atPath: place.path("state"))
        for file in files where file.hasPrefix("registry.sqlite") {
            let bytes = try Data(contentsOf: place.file("state/" + file))
            #expect(bytes.range(of: Data("OTHER".utf8)) == nil, "\(file)")
        }
        service.kill()
        await server.stop()
    }

    @Test(arguments: [
        ["--max-tries", "x"], ["--retry-on", "200"], ["--max-redirects", "101"], ["--proxy", "ftp://p"],
        ["--netrc-file", "/nonexistent/netrc"], ["--cookies", "/bin/sh"], ["--proxy", "p:1", "--no-proxy"],
    ]) func anInvalidOptionIsNamed(_ options: [String]) async throws {
        let place = try TestDirectory()
        let result = try await CommandRun.run(
            ["add", "http://127.0.0.1:9/a", "--state", place.path("state")] + options)
        #expect(result.status == 2 && result.stderr.contains(options[0]), "\(result.stderr)")
    }

    @Test(.timeLimit(.minutes(2))) func aLimitOfOneIsAnsweredWithItsOwn() async throws {
        let service = try ServiceProcess(try TestDirectory())
        #expect(try await service.tow(["limit", "3M"]).text.hasPrefix("rate limit    3.0 MiB/s\n"))
        let added = try await service.tow(["add", "--paused", "--json", "-o", "a.bin", "http://127.0.0.1:9/a.bin"])
        let download = try JSONDecoder().decode(Named.self, from: Data(added.text.utf8))
        #expect(try await service.tow(["limit", "500K", download.id]).text == "rate limit    500.0 KiB/s for a.bin\n")
        #expect(try await service.tow(["show", download.id]).text.contains("\nlimit        500.0 KiB/s\n"))
        #expect(try await service.tow(["limit", "none", download.id]).text == "rate limit    none for a.bin\n")
        #expect(try await service.tow(["show", download.id]).text.contains("limit") == false)
        let all = try await service.tow(["limit"])
        #expect(all.text.hasPrefix("rate limit    3.0 MiB/s\nmax running "), "the common limit is unchanged")
        service.kill()
    }

    @Test(.timeLimit(.minutes(2))) func oneIsShownWithItsMirrors() async throws {
        let service = try ServiceProcess(try TestDirectory())
        _ = try await service.tow(["list"])
        let mirrors = ["--mirror", "http://127.0.0.2:9/a.bin", "--mirror", "http://127.0.0.3:9/a.bin"]
        let added = try await service.tow(["add", "--paused", "--json", "http://127.0.0.1:9/a.bin"] + mirrors)
        let download = try JSONDecoder().decode(Named.self, from: Data(added.text.utf8))
        let shown = try await service.tow(["show", download.id]).text
        #expect(shown.contains("\nmirror       http://127.0.0.3:9/a.bin\nfile "), "\(shown)")
        #expect(shown.contains("mirror       http://127.0.0.2:9/a.bin"), "\(shown)")
        service.kill()
    }

    /// A running download pauses a moment later; the command answers with the state after that.
    @Test(.timeLimit(.minutes(2))) func aPauseIsAnsweredWhenItIsOne() async throws {
        let server = try await FaultServer.start(["/a.bin": Resource(length: 64 << 20, seed: 7, rate: 1 << 20)])
        let service = try ServiceProcess(try TestDirectory())
        func told(_ words: [String]) async throws -> Named {
            let result = try await service.tow(words + ["--json"])
            return try JSONDecoder().decode(Named.self, from: Data(result.text.utf8))
        }
        _ = try await service.tow(["list"])
        let added = try await told(["add", "-o", "a.bin", server.url("/a.bin")])
        let end = ContinuousClock.now + .seconds(60)
        while try await told(["show", added.id]).state != "downloading", ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(try await told(["pause", added.id]).state == "paused")
        service.kill()
        await server.stop()
    }

    private struct Named: Decodable {
        let id: String
        let state: String
    }
}
