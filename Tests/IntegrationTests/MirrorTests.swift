import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine
import TransferSimulation

/// Tests one file from several servers (RFC 6249): each server may fail, and none may deliver bytes of another file.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct MirrorTests {
    private static let length: Int64 = 8_000_000

    /// Runs `body` with the site's server as the primary and `other` as its mirror.
    private func with(
        _ mirror: Resource, primary: Resource = Resource(length: length, rate: 8_000_000),
        _ body: (Site, _ other: FaultServer, _ terms: @escaping @Sendable (inout DownloadOptions) -> Void) async throws
            -> Void
    ) async throws {
        var options = ServerOptions()
        options.host = "127.0.0.2"
        let other = try await FaultServer.start([Site.path: mirror], options: options)
        let url = try HTTPURL(parsing: other.url(Site.path))
        try await Site.with(try await Site(primary)) { site in
            try await body(site, other) {
                $0.connections = 2
                $0.mirrors = [url]
            }
        }
        await other.stop()
    }

    private func served(_ server: FaultServer) -> Int64 { server.log.bodyBytesServed(Site.path) }

    private func checksum(_ length: Int64 = Self.length) throws -> Checksum {
        let bytes = FaultContent(seed: 1).bytes(in: 0..<length)
        return try #require(Checksum(algorithm: .crc32c, value: CRC32C.bigEndian(bytes)))
    }

    private func leftOut(_ outcome: Outcome) -> Int { outcome.notices.count { $0.kind == .sourceLeftOut } }

    @Test func bothBringAPart() async throws {
        try await with(Resource(length: Self.length, rate: 8_000_000)) { site, other, terms in
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome)
            #expect(served(other) > Self.length / 5 && site.served > Self.length / 5)
            #expect(Double(outcome.received) < 1.1 * Double(Self.length))
            #expect(leftOut(outcome) == 0)
        }
    }

    /// Row 57, where the tag shows another file: none of its bytes is requested twice.
    @Test func row57OtherFileByItsTag() async throws {
        try await with(Resource(Version(seed: 2, length: Self.length))) { site, other, terms in
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome)
            #expect(leftOut(outcome) == 1)
            #expect(other.log.requests.count == 1)
        }
    }

    /// Row 57, where the tag lies or another proof was asked for: a sample detects the mirror, and its bytes are
    /// fetched from the primary.
    @Test(arguments: ["2-8000000", "1-8000000"]) func row57OtherBytes(_ tag: String) async throws {
        let wrong = Resource(Version(seed: 2, length: Self.length, etag: .strong(tag)), rate: 2_000_000)
        try await with(wrong) { site, other, terms in
            let sum = try checksum()
            let outcome = try await site.download {
                terms(&$0)
                $0.checksum = sum
            }
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(served(other) > 0 && served(other) < 2_000_000)
            #expect(site.served < Self.length + 1_000_000, "bytes of the primary are kept")
        }
    }

    /// Row 57 where the tag is the only evidence, and it lies.
    @Test func row57OtherBytesUnderOneTag() async throws {
        let wrong = Resource(Version(seed: 2, length: Self.length, etag: .strong("1-8000000")), rate: 8_000_000)
        try await with(wrong) { site, other, terms in
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(leftOut(outcome) == 1)
            #expect(served(other) > 0 && served(other) < 2_000_000)
        }
    }

    /// A mirror that sends at most 10,000 bytes at a time sends no sample, and is asked for one once.
    @Test func aMirrorThatGivesLittle() async throws {
        let little = Resource(length: Self.length, behaviour: .always(.shorterRange(10_000)))
        try await with(little) { site, other, terms in
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome, Version(length: Self.length))
            let samples = other.log.requests.count { request in
                request.info.fields.contains { $0.0 == "Range" && Self.count($0.1) == 16 << 10 }
            }
            #expect(samples == 1)
        }
    }

    /// Returns the number of bytes that a `Range` asks for.
    private static func count(_ range: String) -> Int {
        let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
        return ends.count == 2 ? ends[1] - ends[0] + 1 : 0
    }

    /// The checksum matches the mirror: all of the primary's bytes are discarded, and the mirror's are published.
    @Test(arguments: [length, length + 5, 1000]) func theFirstURLIsWrong(_ primaryLength: Int64) async throws {
        let wrong = Resource(Version(seed: 2, length: primaryLength), rate: 8_000_000)
        try await with(Resource(length: Self.length, rate: 8_000_000), primary: wrong) { site, other, terms in
            let sum = try checksum()
            let outcome = try await site.download {
                terms(&$0)
                $0.checksum = sum
            }
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(outcome.notices.count { $0.kind == .restarted } == 1)
            #expect(site.served < Self.length + 1_000_000)
        }
    }

    /// A mirror or the primary fails midway: the other continues, and the received bytes are kept.
    @Test(arguments: [true, false]) func oneDies(isPrimary: Bool) async throws {
        try await with(
            Resource(length: Self.length, rate: 3_000_000), primary: Resource(length: Self.length, rate: 3_000_000)
        ) { site, other, terms in
            let download = Download(try site.options { terms(&$0) }, storage: FileStorage())
            async let running = download.run()
            await download.observer.wait { $0.heldBytes > 2_000_000 }
            let victim = isPrimary ? site.server : other
            await victim.refuseConnections()
            await victim.closeConnections(reset: true)
            let outcome = await running
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(site.served + served(other) < Self.length + 1_500_000)
        }
    }

    /// The primary is unreachable, or has no such file, from the start.
    @Test(arguments: [0, 404, 503]) func primaryIsGone(_ status: Int) async throws {
        let behaviour: Behaviour = status == 0 ? .correct : .always(.status(status))
        try await with(
            Resource(length: Self.length), primary: Resource(length: Self.length, behaviour: behaviour)
        ) { site, other, terms in
            if status == 0 { await site.server.refuseConnections() }
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(served(other) >= Self.length)
        }
    }

    /// The bytes of an earlier run are completed from the mirror when the primary is gone, and no byte is fetched
    /// twice.
    @Test func heldBytesGoOnFromAMirror() async throws {
        try await with(Resource(length: Self.length, rate: 4_000_000), primary: Resource(length: Self.length)) {
            site, other, terms in
            try await site.interrupt(after: 5_000_000)
            await site.server.refuseConnections()
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(served(other) < Self.length - 5_000_000 + 300_000)
        }
    }

    /// Redirects of a mirror are followed; a redirect to a wrong target only excludes the mirror.
    @Test(arguments: [true, false]) func redirectedMirror(leadsSomewhere: Bool) async throws {
        let last = try await FaultServer.start([Site.path: Resource(length: Self.length, rate: 8_000_000)])
        let target = leadsSomewhere ? last.url(Site.path) : "ftp://example.org/file"
        try await with(Resource(length: Self.length, behaviour: .always(.redirect(to: target)))) { site, _, terms in
            let outcome = try await site.download { terms(&$0) }
            try site.expectFile(outcome, Version(length: Self.length))
            #expect(leftOut(outcome) == (leadsSomewhere ? 0 : 1))
            #expect((served(last) > 1_000_000) == leadsSomewhere)
        }
        await last.stop()
    }

    /// CVE-2021-22923: secrets of the first origin are not sent to mirrors.
    @Test func mirrorsGetNoSecrets() async throws {
        try await with(Resource(length: Self.length, rate: 8_000_000)) { site, other, terms in
            let folder = try Scratch()
            let netrc = try folder.write("netrc", "machine 127.0.0.1 login me password netrc-secret\n")
            let jar = try folder.write("jar", "127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tcookie-secret\n")
            let outcome = try await site.download {
                terms(&$0)
                $0.connection.cookieFile = jar
                $0.connection.netrc = .file(netrc)
                $0.userFields = HTTPFields([("X-Secret", "field-secret"), ("Authorization", "Bearer secret")])
            }
            try site.expectFile(outcome)
            #expect(!other.log.requests.isEmpty)
            for request in other.log.requests {
                #expect(
                    request.info.fields.allSatisfy { !$0.1.contains("secret") && $0.0.lowercased() != "authorization" })
            }
        }
    }

    /// The built command is killed midway and run again; then it gets invalid options.
    @Test func killedAndRunAgain() async throws {
        try await with(
            Resource(length: Self.length, rate: 2_000_000), primary: Resource(length: Self.length, rate: 2_000_000)
        ) { site, other, _ in
            let mirror = ["-x", "2", "--mirror", other.url(Site.path)]
            let killed = try ChildRun(site.command(mirror), directory: site.scratch.path)
            while site.served + served(other) < 2_500_000 { try await Task.sleep(for: .milliseconds(10)) }
            killed.signal(SIGKILL)
            #expect(try await killed.finish().status == 128 + SIGKILL)
            try site.law(try await site.tow(mirror), status: 0)
            #expect(site.served + served(other) < Self.length + 1_500_000)
            let two = try await site.tow(["--mirror", other.url("/a"), other.url("/b")], named: false)
            #expect(two.status == 2 && two.stderr.contains("needs exactly one URL"), "\(two.stderr)")
            let secret = try await site.tow(["--mirror", "http://me:secret@127.0.0.2/"])
            #expect(secret.status == 2 && !secret.stderr.contains("secret@"), "\(secret.stderr)")
        }
    }
}
