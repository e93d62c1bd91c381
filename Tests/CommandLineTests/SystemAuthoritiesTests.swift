import Foundation
import TestServers
import Testing

/// The system's certificate authorities, in a mount namespace of one test's own: there `/etc/ssl/certs` is a folder of the
/// test's, as `update-ca-certificates(8)` would leave it or as somebody has changed it by hand.
@Suite(
    .serialized, .timeLimit(.minutes(3)),
    .enabled(
        if: geteuid() == 0
            && Programs.areThere(Programs.nginx, Programs.openssl, "/usr/bin/unshare", "/usr/bin/strace")))
struct SystemAuthoritiesTests {
    private let nginx: Nginx
    private let place: TestDirectory
    private let trace: String

    init() async throws {
        nginx = try await Nginx()
        place = try TestDirectory()
        trace = nginx.folder.path + "/trace"
    }

    private static let file = "ca-certificates.crt"

    /// Where the server's authority is.
    enum Home: CaseIterable {
        case file, directory, both, nowhere
    }

    /// A folder as `/etc/ssl/certs` may be. Something is in its file in any case.
    private func authorities(_ home: Home) throws -> String {
        let certificates = nginx.certificates
        let folder = nginx.folder.path + "/certs"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var bundle = certificates.folder.read("self-signed.pem")
        let authority = certificates.folder.read("authority.pem")
        if home == .file || home == .both { bundle += authority }
        try bundle.write(toFile: folder + "/" + Self.file, atomically: false, encoding: .utf8)
        if home == .directory || home == .both {
            try authority.write(toFile: folder + "/authority.pem", atomically: false, encoding: .utf8)
            try ServerProgram.run(Programs.openssl, ["rehash", folder])
        }
        return folder
    }

    /// `tow get` where the system's authorities are those; what it opens goes to `trace`.
    private func get(_ home: Home, _ arguments: String...) async throws -> CommandRun.Result {
        let script = "mount --bind \"$1\" /etc/ssl/certs && shift && exec \"$@\""
        let tow = CommandRun.products.appendingPathComponent("tow").path
        return try await CommandRun(
            ["-m", "/bin/sh", "-c", script, "sh", try authorities(home)]
                + ["/usr/bin/strace", "-f", "-e", "trace=openat,open", "-o", trace, tow, "get"] + arguments,
            directory: place.url, program: URL(fileURLWithPath: "/usr/bin/unshare")
        ).finish()
    }

    /// How often the file of authorities was read.
    private var readings: Int {
        nginx.folder.read("trace").split(separator: "\n").count {
            $0.contains("/" + Self.file) && !$0.contains("ENOENT")
        }
    }

    @Test(arguments: Home.allCases) func authoritiesCountWhereverTheyAre(_ home: Home) async throws {
        let result = try await get(home, nginx.url("small", certificate: "good"))
        #expect(readings == 1)
        if home == .nowhere {
            #expect(result.status == 1, "\(result.stderr)")
            #expect(result.stderr.contains("certificate"), "\(result.stderr)")
            #expect(place.names.isEmpty)
        } else {
            #expect(result.status == 0, "\(result.stderr)")
            #expect(place.names == ["small"])
        }
    }

    /// Reading them takes longer than the rest of a handshake.
    @Test(arguments: [Home.file, .directory]) func connectionsShareTheAuthorities(_ home: Home) async throws {
        let result = try await get(home, "-x", "4", nginx.url("slow/large", certificate: "good"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try Nginx.content.firstMismatch(inFile: place.path("large"), length: Nginx.largeLength) == nil)
        #expect(Set(nginx.log.map(\.connection)).count >= 4)
        // Once for each engine thread at most.
        #expect((1...2).contains(readings))
    }

    @Test func whoAsksNobodyReadsNothing() async throws {
        let result = try await get(.nowhere, "--insecure", nginx.url("small", certificate: "self-signed"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(readings == 0)
    }

    /// A file of one's own takes the place of both.
    @Test(arguments: [Home.file, .directory]) func aFileOfOnesOwnStandsAlone(_ home: Home) async throws {
        let other = nginx.certificates.folder.path + "/self-signed.pem"
        let result = try await get(home, "--cacert", other, nginx.url("small", certificate: "good"))
        #expect(result.status == 1, "\(result.stderr)")
        #expect(readings == 0)
    }
}
