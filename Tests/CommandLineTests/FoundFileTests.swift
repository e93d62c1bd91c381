import FaultServer
import Foundation
import TestServers
import Testing

/// The name is taken when the download begins, and a checksum shows whether the existing file is the wanted one.
struct FoundFileTests {
    private static let length: Int64 = 3 << 20
    /// The bytes of `FaultContent(seed: 7)`.
    private static let bytes = Data(FaultContent(seed: 7).bytes(in: 0..<length))

    private func server() async throws -> FaultServer {
        try await FaultServer.start([
            "/data.bin": Resource(length: Self.length, seed: 7), "/small.bin": Resource(length: 10_000, seed: 1),
        ])
    }

    private func checksum(_ place: TestDirectory, of bytes: Data = bytes) async throws -> String {
        try bytes.write(to: place.file("bytes"))
        return "sha256:" + (try await place.sha256(of: "bytes"))
    }

    /// The file was fetched by another program before, or copied to the destination.
    @Test(arguments: [[], ["-o", "data.bin"], ["--if-exists", "rename"]])
    func whatTheChecksumProvesIsNotFetched(_ more: [String]) async throws {
        let server = try await server()
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        try Self.bytes.write(to: place.file("data.bin"))
        let words = ["get"] + more + ["--checksum", sum, server.url("/data.bin")]
        let result = try await CommandRun.run(words, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.stderr.contains("data.bin: the file matches its checksum (sha256)"), "\(result.stderr)")
        #expect(result.stderr.contains("); not downloaded again"), "\(result.stderr)")
        #expect(place.names == ["data.bin"])
        // Without a name from the user, the server's answer determines the name.
        #expect(server.log.requests("/data.bin").isEmpty == more.contains("-o"))
        // From now on, the mark identifies the file without a checksum.
        let again = try await CommandRun.run(["get", server.url("/data.bin")], directory: place.url)
        #expect(again.status == 0 && again.stderr.contains("already downloaded ("), "\(again.stderr)")
        await server.stop()
    }

    @Test(arguments: ["fail", "rename", "overwrite", "skip"])
    func somethingElseIsTreatedAsAsked(_ policy: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        var other = Self.bytes
        other[1 << 20] ^= 1
        try other.write(to: place.file("data.bin"))
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy, "--checksum", sum, server.url("/data.bin")], directory: place.url)
        #expect(result.status == (policy == "fail" ? 7 : 0), "\(result.stderr)")
        if policy == "fail" {
            #expect(
                result.stderr.contains("data.bin already exists and does not match the expected"),
                "\(result.stderr)")
        }
        #expect(place.names == (policy == "rename" ? ["data (1).bin", "data.bin"] : ["data.bin"]))
        #expect(try Data(contentsOf: place.file("data.bin")) == (policy == "overwrite" ? Self.bytes : other))
        if policy == "rename" { #expect(try Data(contentsOf: place.file("data (1).bin")) == Self.bytes) }
        await server.stop()
    }

    /// A file that got a number is found under its numbered name.
    @Test(arguments: [[], ["-o", "data.bin"]], [false, true])
    func whatWasRenamedIsNotFetchedAgain(_ more: [String], _ isChecked: Bool) async throws {
        let server = try await server()
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        for name in ["data.bin", "data (1).bin"] { try Data("mine".utf8).write(to: place.file(name)) }
        let words = ["get", "--if-exists", "rename"] + more + (isChecked ? ["--checksum", sum] : [])
        for isFirst in [true, false] {
            let result = try await CommandRun.run(words + [server.url("/data.bin")], directory: place.url)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stderr.contains("already downloaded (") == !isFirst, "\(result.stderr)")
            #expect(place.names == ["data (1).bin", "data (2).bin", "data.bin"])
        }
        #expect(try Data(contentsOf: place.file("data (2).bin")) == Self.bytes)
        // If the user puts another file there, the next run fetches the file again under a new name.
        try Data("mine".utf8).write(to: place.file("data (2).bin"))
        let third = try await CommandRun.run(words + [server.url("/data.bin")], directory: place.url)
        #expect(third.status == 0, "\(third.stderr)")
        #expect(place.names == ["data (1).bin", "data (2).bin", "data (3).bin", "data.bin"])
        await server.stop()
    }

    /// An answer whose body was complete before the existing file was read counts: one request, no other try.
    @Test(.enabled(if: Programs.areThere(Programs.nginx)), arguments: [true, false], [[], ["-o", "small"]])
    func anAnswerWaitsForWhatIsRead(_ isIt: Bool, _ more: [String]) async throws {
        let nginx = try await Nginx()
        let place = try TestDirectory()
        let bytes = Data("0123456789".utf8)
        let sum = try await checksum(TestDirectory(), of: bytes)
        try (isIt ? bytes : Data("9876543210".utf8)).write(to: place.file("small"))
        let result = try await CommandRun.run(
            ["get", "--if-exists", "rename", "--max-tries", "1", "--checksum", sum] + more + [nginx.url("small")],
            directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.stderr.contains("already downloaded (") == isIt, "\(result.stderr)")
        #expect(place.names == (isIt ? ["small"] : ["small", "small (1)"]))
        #expect(try Data(contentsOf: place.file(isIt ? "small" : "small (1)")) == bytes)
    }

    /// The server has another version now, and the user its checksum: the old file is neither used nor in the way.
    @Test(arguments: [[], ["-o", "data.bin"]], [true, false])
    func anOlderVersionUnderANumberStays(_ more: [String], _ isForeign: Bool) async throws {
        let old = try await server()
        let place = try TestDirectory()
        if isForeign { try Data("mine".utf8).write(to: place.file("data.bin")) }
        let words = ["get", "--if-exists", "rename"] + more
        #expect(try await CommandRun.run(words + [old.url("/data.bin")], directory: place.url).status == 0)
        let port = old.port
        await old.stop()
        var options = ServerOptions()
        options.port = port
        let new = try await FaultServer.start(["/data.bin": Resource(length: Self.length, seed: 8)], options: options)
        let bytes = Data(FaultContent(seed: 8).bytes(in: 0..<Self.length))
        let sum = try await checksum(TestDirectory(), of: bytes)
        for isFirst in [true, false] {
            let result = try await CommandRun.run(
                words + ["--checksum", sum, new.url("/data.bin")], directory: place.url)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stderr.contains("already downloaded (") == !isFirst, "\(result.stderr)")
        }
        let newest = isForeign ? "data (2).bin" : "data (1).bin"
        #expect(
            place.names == (isForeign ? ["data (1).bin", "data (2).bin", "data.bin"] : ["data (1).bin", "data.bin"]))
        #expect(try Data(contentsOf: place.file(newest)) == bytes)
        await new.stop()
    }

    /// Two downloads have the same name, and the name is taken by a file that one of them reads.
    @Test func twoOfOneNameBesideATakenOne() async throws {
        let server = try await FaultServer.start([
            "/a/data.bin": Resource(length: Self.length, seed: 7),
            "/b/data.bin": Resource(length: Self.length, seed: 8),
        ])
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        var other = Self.bytes
        other[1 << 20] ^= 1
        try other.write(to: place.file("data.bin"))
        let list = "\(server.url("/a/data.bin"))\n checksum=\(sum)\n\(server.url("/b/data.bin"))\n"
        try Data(list.utf8).write(to: place.file("list"))
        let result = try await CommandRun.run(
            ["get", "--if-exists", "rename", "-i", "list"], directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        // The numbers depend on which download is first.
        let made = try place.names.filter { !["data.bin", "list"].contains($0) }.map {
            try Data(contentsOf: place.file($0))
        }
        #expect(made.count == 2 && Set(made) == [Self.bytes, Data(FaultContent(seed: 8).bytes(in: 0..<Self.length))])
        await server.stop()
    }

    /// A link is not read as proof: the command reports it, and with `rename` downloads under another name.
    @Test(arguments: ["fail", "rename"]) func aLinkIsNoProof(_ policy: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        try Self.bytes.write(to: place.file("elsewhere"))
        try FileManager.default.createSymbolicLink(atPath: place.path("data.bin"), withDestinationPath: "elsewhere")
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy, "--checksum", sum, server.url("/data.bin")], directory: place.url)
        #expect(result.status == (policy == "fail" ? 7 : 0), "\(result.stderr)")
        #expect(result.stderr.contains("not known to come from this URL") == (policy == "fail"), "\(result.stderr)")
        await server.stop()
    }

    /// A download was interrupted, and then its file was created in another way: no byte is fetched that could not be
    /// published.
    @Test(arguments: ["right", "wrong", "unknown", "skip", "rename", "overwrite"])
    func aFileThatCameBesideThePartIsSeenFirst(_ which: String) async throws {
        let server = try await FaultServer.start(["/data.bin": Resource(length: Self.length, seed: 7, rate: 2 << 20)])
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        let first = try CommandRun(["get", "-x", "1", server.url("/data.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > 1 << 20 }
        first.signal(SIGINT)
        #expect(try await first.finish().status == 130)
        var other = Self.bytes
        other[1 << 20] ^= 1
        try (which == "right" ? Self.bytes : other).write(to: place.file("data.bin"))
        let before = server.log.requests("/data.bin").count
        let policy = ["skip", "rename", "overwrite"].contains(which) ? which : "fail"
        let more = ["right", "wrong"].contains(which) ? ["--checksum", sum] : []
        let result = try await CommandRun.run(
            ["get", "--if-exists", policy] + more + [server.url("/data.bin")], directory: place.url)
        let isRefused = ["wrong", "unknown"].contains(which)
        #expect(result.status == (isRefused ? 7 : 0), "\(result.stderr)")
        let goesOn = ["rename", "overwrite"].contains(which)
        #expect((server.log.requests("/data.bin").count > before) == goesOn, "\(result.stderr)")
        if !goesOn { #expect(place.names == ["data.bin", "data.bin.tow", "data.bin.tow-journal"]) }
        if which == "rename" { #expect(place.names == ["data (1).bin", "data.bin"]) }
        if which == "overwrite" { #expect(try Data(contentsOf: place.file("data.bin")) == Self.bytes) }
        await server.stop()
    }

    /// A tag that two URLs share proves nothing about their bytes: a part file does not resume from another path.
    @Test(arguments: ["fail", "rename", "overwrite", "checksum", "moved"])
    func thePartOfAnotherURLIsNotJoined(_ which: String) async throws {
        var other = Version(seed: 8, length: Self.length)
        other.etag = Version(seed: 7, length: Self.length).etag
        let same = Resource(length: Self.length, seed: 7)
        let server = try await FaultServer.start([
            "/a/one.bin": Resource(length: Self.length, seed: 7, rate: 2 << 20),
            "/b/two.bin": which == "checksum" ? same : Resource(other), "/c/one.bin": same,
        ])
        let place = try TestDirectory()
        let first = try CommandRun(["get", "-x", "1", "-o", "out", server.url("/a/one.bin")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/a/one.bin") > 1 << 20 }
        first.signal(SIGINT)
        #expect(try await first.finish().status == 130)
        let port = server.port
        // The same path at another address is a server that moved.
        var options = ServerOptions()
        (options.host, options.port) = ("127.0.0.2", port)
        let moved = try await FaultServer.start(["/a/one.bin": same], options: options)
        let url = which == "moved" ? "http://127.0.0.2:\(port)/a/one.bin" : server.url("/b/two.bin")
        let sum = try await checksum(TestDirectory())
        let more = which == "checksum" ? ["--checksum", sum] : which == "moved" ? [] : ["--if-exists", which]
        let result = try await CommandRun.run(["get", "-o", "out"] + more + [url], directory: place.url)
        if ["fail", "rename"].contains(which) {
            #expect(result.status == 7, "\(result.stderr)")
            #expect(
                result.stderr.contains("out.tow is an unfinished download of another URL (http://"), "\(result.stderr)")
            #expect(place.names == ["out.tow", "out.tow-journal"])
        } else {
            #expect(result.status == 0, "\(result.stderr)")
            let seed: UInt64 = which == "overwrite" ? 8 : 7
            #expect(try FaultContent(seed: seed).firstMismatch(inFile: place.path("out"), length: Self.length) == nil)
            #expect(result.stderr.contains(" in total)") == (which != "overwrite"), "\(result.stderr)")
        }
        await moved.stop()
        await server.stop()
    }

    /// A file that takes minutes to read blocks neither the rest of a list nor a user who interrupts.
    @Test(.timeLimit(.minutes(1))) func aLongFileIsReadBesideEverythingElse() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let sum = try await checksum(TestDirectory())
        try Data().write(to: place.file("data.bin"))
        try #require(truncate(place.path("data.bin"), 1 << 40) == 0)
        let list = "\(server.url("/data.bin"))\n checksum=\(sum)\n output=data.bin\n\(server.url("/small.bin"))\n"
        try Data(list.utf8).write(to: place.file("list"))
        let run = try CommandRun(["get", "-i", "list"], directory: place.url)
        try await eventually { run.stderrSoFar.contains("small.bin  ") }
        #expect(
            run.stderrSoFar.contains("data.bin: the destination file already exists. Reading"), "\(run.stderrSoFar)")
        run.signal(SIGINT)
        let result = try await run.finish()
        #expect(result.status == 130)
        #expect(result.stderr.contains("data.bin  interrupted before any data was received"), "\(result.stderr)")
        await server.stop()
    }

    /// Several files have the same name, and all but the first got a number: each is found under its own name.
    @Test func thoseWithNumbersAreNotAskedForAgain() async throws {
        let server = try await FaultServer.start(["/*": Resource(length: 3000)])
        let place = try TestDirectory()
        let urls = (0..<4).map { server.url("/\($0)/data.bin") }
        let first = try await CommandRun.run(["get", "-j", "1"] + urls, directory: place.url)
        #expect(first.status == 0 && server.log.requests.count == 4, "\(first.stderr)")
        #expect(place.names == ["data (1).bin", "data (2).bin", "data (3).bin", "data.bin"])
        for order in [urls, urls.reversed()] {
            let again = try await CommandRun.run(["get"] + order, directory: place.url)
            #expect(again.status == 0 && again.stderr.contains("0 done, 4 already downloaded; "), "\(again.stderr)")
        }
        #expect(server.log.requests.count == 4)
        // A download of another URL gets the next number.
        let other = try await CommandRun.run(["get", server.url("/4/data.bin")], directory: place.url)
        #expect(other.status == 0 && place.names.contains("data (4).bin"), "\(other.stderr)")
    }
}
