import FaultServer
import Foundation
import Testing

/// URLs that differ only in parameters whose values no journal contains: two files, or one link that is signed again.
struct KeyedLinkTests {
    private static let length: Int64 = 3_000_000
    private static let version = Version(seed: 7, length: length)
    /// The bytes of the first file before its transfer is interrupted.
    private static let held: Int64 = 1_500_000
    private static let names = ["key", "token", "auth", "sig", "id", "api_key", "session", "X-Amz-Signature"]
    /// Two links of each kind, the second signed again.
    private static let signed = [
        ("hdnea=1", "hdnea=2"),
        ("Expires=1&Signature=1&Key-Pair-Id=K&id=x", "Expires=2&Signature=2&Key-Pair-Id=K&id=x"),
        (
            "X-Amz-Algorithm=A&X-Amz-Credential=1&X-Amz-Date=1&X-Amz-Expires=9&X-Amz-SignedHeaders=h&X-Amz-Signature=1",
            "X-Amz-Algorithm=A&X-Amz-Credential=1&X-Amz-Date=2&X-Amz-Expires=9&X-Amz-SignedHeaders=h&X-Amz-Signature=2"
        ), ("sv=1&sr=b&sp=r&se=1&sig=1&key=k", "sv=1&sr=b&sp=r&se=2&sig=2&key=k"),
    ]
    /// Versions of another file: with another tag, with the same length and no validator, and with another length.
    private static let others = [
        version.replaced(seed: 9), Version(seed: 9, length: length, etag: .absent, lastModified: nil),
        Version(seed: 9, length: length + 1),
    ]

    /// A server with one path, and the directory of the downloads.
    private struct Site {
        let server: FaultServer
        let place: TestDirectory

        init() async throws {
            server = try await FaultServer.start(["/download": Resource(KeyedLinkTests.version)])
            place = try TestDirectory()
        }

        /// Runs tow for a link that leads to a version of a file.
        func get(
            _ query: String, _ version: Version = KeyedLinkTests.version, _ words: String...
        ) async throws -> CommandRun.Result {
            server.replace("/download", with: version)
            return try await CommandRun.run(["get", server.url("/download?\(query)")] + words, directory: place.url)
        }

        /// Interrupts the transfer of a link after `held` bytes.
        func interrupt(_ query: String, _ version: Version = KeyedLinkTests.version, _ words: String...) async throws {
            let cut = Behaviour.always(.shortBody(after: KeyedLinkTests.held))
            server.set(.first(1, cut, then: .always(.status(503))), for: "/download")
            server.replace("/download", with: version)
            let url = server.url("/download?\(query)")
            let result = try await CommandRun.run(["get", "--max-tries", "1", url] + words, directory: place.url)
            #expect(result.status == 3, "\(result.stderr)")
            server.set(.correct, for: "/download")
        }

        /// Returns whether a file contains a version.
        func holds(_ name: String, _ version: Version) -> Bool {
            version.content.matches(file: place.path(name), length: version.length)
        }

        /// Runs `body` and expects that the download succeeds with the held bytes.
        func resuming(_ body: () async throws -> CommandRun.Result) async throws {
            let result = try await body()
            #expect(result.status == 0 && result.stderr.contains("resuming: 1.4 MiB"), "\(result.stderr)")
        }
    }

    @Test(arguments: names) func twoKeysAreTwoFiles(_ name: String) async throws {
        let site = try await Site()
        let other = Self.version.replaced(seed: 9)
        try await site.interrupt("\(name)=a.zip")
        #expect(site.place.names == ["download.tow", "download.tow-journal"])
        let second = try await site.get("\(name)=b.zip", other)
        #expect(second.status == 0 && site.holds("download (1)", other), "\(second.stderr) \(site.place.names)")
        try await site.resuming { try await site.get("\(name)=a.zip") }
        #expect(site.place.names == ["download", "download (1)"] && site.holds("download", Self.version))
        // Both are known as complete downloads.
        let count = site.server.log.requests.count
        for (query, version) in [("\(name)=a.zip", Self.version), ("\(name)=b.zip", other)] {
            let again = try await site.get(query, version)
            #expect(again.status == 0 && again.stderr.contains("already downloaded"), "\(again.stderr)")
        }
        #expect(site.server.log.requests.count == count && site.place.names.count == 2)
        await site.server.stop()
    }

    @Test(arguments: names.filter { $0 != "id" }) func noFileContainsTheKey(_ name: String) async throws {
        let site = try await Site()
        try await site.interrupt("\(name)=CANARY")
        for file in site.place.names {
            #expect(try Data(contentsOf: site.place.file(file)).range(of: Data("CANARY".utf8)) == nil, "\(file)")
        }
        await site.server.stop()
    }

    @Test(arguments: signed) func aLinkThatIsSignedAgainResumes(_ links: (String, String)) async throws {
        let site = try await Site()
        try await site.interrupt(links.0)
        try await site.resuming { try await site.get(links.1) }
        #expect(site.place.names == ["download"] && site.holds("download", Self.version))
        await site.server.stop()
    }

    @Test(arguments: signed, others)
    func aSignatureIsNoProof(_ links: (String, String), _ other: Version) async throws {
        let site = try await Site()
        try await site.interrupt(links.0)
        let second = try await site.get(links.1, other)
        #expect(second.status == 0 && site.holds("download (1)", other), "\(second.stderr) \(site.place.names)")
        try await site.resuming { try await site.get(links.0) }
        #expect(site.place.names == ["download", "download (1)"] && site.holds("download", Self.version))
        await site.server.stop()
    }

    /// A complete file with the signed link stays as well.
    @Test(arguments: signed, others)
    func aCompleteFileStays(_ links: (String, String), _ other: Version) async throws {
        let site = try await Site()
        #expect(try await site.get(links.0).status == 0)
        let same = try await site.get(links.1)
        #expect(same.status == 0 && site.place.names == ["download"], "\(same.stderr) \(site.place.names)")
        let second = try await site.get(links.1, other)
        #expect(second.status == 0 && site.holds("download (1)", other), "\(second.stderr) \(site.place.names)")
        #expect(site.holds("download", Self.version))
        await site.server.stop()
    }

    /// With `-o`, both files would have one name: the second download fails, and the bytes of the first stay.
    @Test(arguments: ["key=b", "token=b", "id=b"], others)
    func aNameOfTheUserIsNotShared(_ query: String, _ other: Version) async throws {
        let site = try await Site()
        let first = query.dropLast() + "a"
        try await site.interrupt(String(first), Self.version, "-o", "x")
        let second = try await site.get(query, other, "-o", "x")
        #expect(second.status == 7 && second.stderr.contains("another URL"), "\(second.status) \(second.stderr)")
        #expect(site.place.names == ["x.tow", "x.tow-journal"])
        try await site.resuming { try await site.get(String(first), Self.version, "-o", "x") }
        #expect(site.place.names == ["x"] && site.holds("x", Self.version))
        await site.server.stop()
    }

    /// A list gives each key a file of its own, also when it runs again.
    @Test func aListWithKeys() async throws {
        let site = try await Site()
        let list = (1...4).map { site.server.url("/download?key=\($0)") }.joined(separator: "\n") + "\n"
        for run in 0..<2 {
            let count = site.server.log.requests.count
            let result = try await CommandRun.run(["get", "-i", "-"], input: list, directory: site.place.url)
            #expect(result.status == 0, "\(result.stderr)")
            #expect(site.place.names == ["download", "download (1)", "download (2)", "download (3)"])
            #expect((site.server.log.requests.count == count) == (run == 1))
        }
        await site.server.stop()
    }
}
