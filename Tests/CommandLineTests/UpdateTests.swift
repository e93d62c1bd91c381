import FaultServer
import Foundation
import TestServers
import Testing
import TowlineCore
import TowlineEngine

@testable import tow

/// `--if-exists update` as a user sees it.
struct UpdateTests {
    private static let length: Int64 = 3 << 20

    private func update(_ words: [String], _ place: TestDirectory) async throws -> CommandRun.Result {
        try await CommandRun.run(["get", "--if-exists", "update"] + words, directory: place.url)
    }

    /// Without the option, the message says how old the file is, and names the option.
    @Test func theMessageNamesTheOption() async throws {
        let server = try await FaultServer.start(["/data.bin": Resource(length: Self.length, seed: 7)])
        let place = try TestDirectory()
        let url = server.url("/data.bin")
        #expect(try await update([url], place).stderr.contains("data.bin  downloaded 3.0 MiB in "))
        let count = server.log.requests.count
        let plain = try await CommandRun.run(["get", url], directory: place.url)
        #expect(
            plain.status == 0
                && plain.stderr.hasSuffix(
                    "data.bin  already downloaded (3.0 MiB, dated 2023-11-14 22:13 UTC); not downloaded again."
                        + " To download a newer version, use --if-exists update\n"),
            "\(plain.stderr)")
        #expect(server.log.requests.count == count)
        let again = try await update([url], place)
        #expect(again.status == 0 && again.stderr == "data.bin  is up to date (3.0 MiB)\n", "\(again.stderr)")
        let log = try await update(["--json", "-o", "data.bin", url], place)
        let end = try #require(try log.objects.first { $0["event"] as? String == "finished" })
        #expect(end["outcome"] as? String == "upToDate" && end["length"] as? Int == Int(Self.length))
        await server.stop()
    }

    /// A list of small files: some changed, one is new.
    @Test(arguments: [[], ["-d", "files"]]) func aList(_ more: [String]) async throws {
        let paths = (0..<8).map { "/f\($0).bin" }
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: paths.map { ($0, Resource(length: 10_000, seed: 1)) }))
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("files"), withIntermediateDirectories: false)
        try Data(paths.dropLast().map { server.url($0) + "\n" }.joined().utf8).write(to: place.file("list"))
        #expect(try await update(more + ["-i", "list"], place).status == 0)
        try Data(paths.map { server.url($0) + "\n" }.joined().utf8).write(to: place.file("list"))
        for path in paths.prefix(2) {
            server.replace(path, with: Version(seed: 2, length: 10_000, lastModified: 1_700_003_600))
        }
        let result = try await update(more + ["-i", "list"], place)
        #expect(result.status == 0 && result.stderr.contains("\n3 done, 5 up to date; 29.3 KiB"), "\(result.stderr)")
        for (index, path) in paths.enumerated() {
            let file = (more.isEmpty ? "" : "files") + path
            let seed: UInt64 = index < 2 ? 2 : 1
            #expect(try FaultContent(seed: seed).firstMismatch(inFile: place.path(file), length: 10_000) == nil)
        }
        await server.stop()
    }

    /// A kill in the middle of an update leaves the old file, and the same command resumes.
    @Test func aKilledUpdateResumes() async throws {
        let version = Version(seed: 7, length: Self.length)
        let server = try await FaultServer.start(["/data.bin": Resource(version, rate: 2 << 20)])
        let place = try TestDirectory()
        let url = server.url("/data.bin")
        #expect(try await update(["-o", "out", url], place).status == 0)
        server.replace("/data.bin", with: version.replaced(seed: 8))
        let run = try CommandRun(
            ["get", "--if-exists", "update", "-x", "1", "-o", "out", url], directory: place.url)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > Self.length + 2 << 20 }
        run.signal(SIGKILL)
        #expect(try await run.finish().status == 137)
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path("out"), length: Self.length) == nil)
        let result = try await update(["-o", "out", url], place)
        #expect(result.status == 0 && result.stderr.contains("resuming: "), "\(result.stderr)")
        #expect(place.names == ["out"])
        #expect(try FaultContent(seed: 8).firstMismatch(inFile: place.path("out"), length: Self.length) == nil)
        await server.stop()
    }

    /// The unfinished download of another URL is not this file's, and is not replaced.
    @Test func anothersPartFileStays() async throws {
        let server = try await FaultServer.start(["/*": Resource(length: Self.length, rate: 2 << 20)])
        let place = try TestDirectory()
        let run = try CommandRun(["get", "-x", "1", "-o", "out", server.url("/a")], directory: place.url)
        await server.log.wait { $0.bodyBytesServed > 1 << 20 }
        run.signal(SIGINT)
        #expect(try await run.finish().status == 130)
        let result = try await update(["-o", "out", server.url("/b")], place)
        #expect(result.status == 7 && result.stderr.contains("unfinished download of another URL"), "\(result.stderr)")
        await server.stop()
    }

    /// The file that a link of the user leads to is updated, and the link stays.
    @Test func throughALink() async throws {
        let version = Version(seed: 7, length: Self.length)
        let server = try await FaultServer.start(["/data.bin": Resource(version)])
        let place = try TestDirectory()
        let url = server.url("/data.bin")
        #expect(try await update([url], place).status == 0)
        try FileManager.default.createSymbolicLink(atPath: place.path("link"), withDestinationPath: "data.bin")
        #expect(try await update(["-o", "link", url], place).stderr.contains("is up to date"))
        server.replace("/data.bin", with: version.replaced(seed: 8))
        #expect(try await update(["-o", "link", url], place).status == 0)
        #expect(try FaultContent(seed: 8).firstMismatch(inFile: place.path("data.bin"), length: Self.length) == nil)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path("link")) == "data.bin")
        #expect(place.names == ["data.bin", "link"])
        await server.stop()
    }

    /// nginx sends 304 only if both the tag and the date are unchanged.
    @Test(.enabled(if: Programs.areThere(Programs.nginx))) func realServer() async throws {
        let nginx = try await Nginx()
        let place = try TestDirectory()
        for expected in ["small  downloaded 10 B", "small  is up to date (10 B)"] {
            let result = try await update([nginx.url("small")], place)
            #expect(result.status == 0 && result.stderr.contains(expected), "\(result.stderr)")
        }
    }

    @Test func datesForPeople() {
        #expect(Phrases.date(1_700_000_000) == "2023-11-14 22:13 UTC")
        #expect(Phrases.date(-1) == "1969-12-31 23:59 UTC")
    }
}
