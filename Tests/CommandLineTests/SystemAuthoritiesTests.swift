import Foundation
import TestServers
import Testing

@testable import tow

/// Tests the system's certificate authorities in a mount namespace of the test: `/etc/ssl/certs` is a folder of the
/// test's there, as `update-ca-certificates(8)` would leave it or as a user has changed it by hand.
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

    /// The place of the server's authority.
    enum Home: CaseIterable {
        case file, directory, both, nowhere
    }

    /// Creates a folder like `/etc/ssl/certs`. Its file always contains the self-signed certificate.
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
            if home == .both {
                let selfSigned = certificates.folder.read("self-signed.pem")
                try selfSigned.write(toFile: folder + "/self-signed.pem", atomically: false, encoding: .utf8)
            }
            try ServerProgram.run(Programs.openssl, ["rehash", folder])
        }
        return folder
    }

    /// Runs `tow get` with these authorities of the system; the files that it opens are recorded in `trace`.
    private func get(_ home: Home, _ arguments: String...) async throws -> CommandRun.Result {
        try await get(authorities(home), arguments: arguments)
    }

    private func get(_ folder: String, before: String = "", _ arguments: String...) async throws -> CommandRun.Result {
        try await get(folder, before: before, arguments: arguments)
    }

    /// - Parameter before: Lines for the shell.
    private func get(
        _ folder: String, before: String = "", arguments: [String]
    ) async throws -> CommandRun.Result {
        let script = before + "mount --bind \"$1\" /etc/ssl/certs && shift && exec \"$@\""
        let tow = CommandRun.products.appendingPathComponent("tow").path
        return try await CommandRun(
            ["-m", "/bin/sh", "-c", script, "sh", folder]
                + ["/usr/bin/strace", "-f", "-e", "trace=openat,open", "-o", trace, tow, "get"] + arguments,
            directory: place.url, program: URL(fileURLWithPath: "/usr/bin/unshare")
        ).finish()
    }

    /// The number of times the file of authorities was read.
    private var readings: Int {
        nginx.folder.read("trace").split(separator: "\n").count {
            $0.contains("/" + Self.file) && !$0.contains("ENOENT")
        }
    }

    @Test(arguments: Home.allCases) func authoritiesCountWhereverTheyAre(_ home: Home) async throws {
        let result = try await get(home, nginx.url("small", certificate: "good"))
        if home == .nowhere {
            #expect(result.status == 1, "\(result.stderr)")
            #expect(result.stderr.contains("certificate"), "\(result.stderr)")
            #expect(place.names.isEmpty)
        } else {
            #expect(result.status == 0, "\(result.stderr)")
            #expect(place.names == ["small"])
        }
    }

    /// Reading the file takes longer than the rest of a handshake. Towline reads it once, to compare it with the
    /// directory; libcurl would read it for each connection.
    @Test func connectionsUseTheDirectoryAlone() async throws {
        let result = try await get(.both, "-x", "4", nginx.url("slow/large", certificate: "good"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try Nginx.content.firstMismatch(inFile: place.path("large"), length: Nginx.largeLength) == nil)
        // nginx logs a cut connection when it next checks that connection.
        for _ in 0..<100 where Set(nginx.log.map(\.connection)).count < 4 {
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(Set(nginx.log.map(\.connection)).count >= 4)
        #expect(readings == 1)
    }

    /// The file has an authority with a new key, and the directory still has the one of the same name with the old key.
    /// A certificate that does not name its signing key (RFC 5280 §4.2.1.1) does not show which of them signed it.
    @Test(arguments: ["good", "no-key-id"]) func whoHasTheNameHidesNobody(certificate: String) async throws {
        let folder = try authorities(.file)
        try ServerProgram.run(
            Programs.openssl,
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
                + ["-subj", "/CN=Towline test authority", "-keyout", folder + "/old.key", "-out", folder + "/old.pem"])
        try ServerProgram.run(Programs.openssl, ["rehash", folder])
        let result = try await get(folder, nginx.url("small", certificate: certificate))
        #expect(result.status == 0, "\(result.stderr)")
    }

    /// Only the user can correct the file: no further attempt is made, and the message says what to do.
    @Test(arguments: [nil, "", "no certificate"] as [String?]) func aFileThatCannotBeReadIsPermanent(_ content: String?)
        async throws
    {
        let folder = try authorities(.file)
        let file = folder + "/" + Self.file
        try FileManager.default.removeItem(atPath: file)
        if let content { try content.write(toFile: file, atomically: false, encoding: .utf8) }
        let result = try await get(folder, nginx.url("small", certificate: "good"))
        #expect(result.status == 2, "\(result.stderr)")
        #expect(result.stderr.contains("--cacert") && result.stderr.contains(Self.file), "\(result.stderr)")
        #expect(!result.stderr.contains("retrying"), "\(result.stderr)")
        #expect(place.names.isEmpty)
    }

    /// A server's own certificate may be among the authorities. A certificate for another name or an expired one is
    /// refused even there.
    @Test(arguments: [("self-signed", 0), ("other-host", 1), ("expired", 1)])
    func certificatesThemselvesAreLookedAt(certificate: String, status: Int32) async throws {
        let result = try await get(.both, nginx.url("small", certificate: certificate))
        #expect(result.status == status, "\(result.stderr)")
    }

    /// The environment variables replace the system's file or its directory, as in OpenSSL and curl.
    @Test(arguments: [
        ("SSL_CERT_FILE=authority.pem", 0), ("CURL_CA_BUNDLE=authority.pem", 0), ("SSL_CERT_DIR=named", 0),
        ("SSL_CERT_FILE=self-signed.pem CURL_CA_BUNDLE=authority.pem", 0), ("SSL_CERT_FILE= CURL_CA_BUNDLE=", 1),
        ("SSL_CERT_FILE=authority.pem CURL_CA_BUNDLE=self-signed.pem", 1),
    ])
    func theEnvironmentNamesAuthorities(_ variables: String, _ status: Int32) async throws {
        let folder = nginx.certificates.folder.path
        let named = folder + "/named"
        try FileManager.default.createDirectory(atPath: named, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: folder + "/authority.pem", toPath: named + "/authority.pem")
        try ServerProgram.run(Programs.openssl, ["rehash", named])
        let exports = variables.split(separator: " ").map { variable in
            let parts = variable.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return "export \(parts[0])=\(parts[1].isEmpty ? "" : folder + "/" + parts[1])\n"
        }
        let result = try await get(
            authorities(.nowhere), before: exports.joined(), nginx.url("small", certificate: "good"))
        #expect(result.status == status, "\(result.stderr)")
    }

    /// A file in the environment without the authority replaces the system's file that has it.
    @Test func theEnvironmentTakesThemAway() async throws {
        let other = nginx.certificates.folder.path + "/self-signed.pem"
        let result = try await get(
            authorities(.file), before: "export SSL_CERT_FILE=\(other)\n", nginx.url("small", certificate: "good"))
        #expect(result.status == 1, "\(result.stderr)")
        #expect(readings == 0)
        // The message names the variable to users who do not know of it.
        let doubt = "self-signed.pem (environment variable SSL_CERT_FILE) lacks the authority"
        #expect(result.stderr.contains(doubt), "\(result.stderr)")
    }

    @Test func whoAsksNobodyReadsNothing() async throws {
        let result = try await get(.nowhere, "--insecure", nginx.url("small", certificate: "self-signed"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.stderr.contains("tow: \(GetRun.insecureNotice)\n"), "\(result.stderr)")
        #expect(readings == 0)
    }

    /// The user's own file replaces both.
    @Test(arguments: [Home.file, .directory]) func aFileOfOnesOwnStandsAlone(_ home: Home) async throws {
        let other = nginx.certificates.folder.path + "/self-signed.pem"
        let result = try await get(home, "--cacert", other, nginx.url("small", certificate: "good"))
        #expect(result.status == 1, "\(result.stderr)")
        #expect(readings == 0)
        let authority = nginx.certificates.authority
        let trusted = try await get(
            authorities(.nowhere), before: "export SSL_CERT_FILE=\(other)\n", "--cacert", authority,
            nginx.url("small", certificate: "good"))
        #expect(trusted.status == 0, "\(trusted.stderr)")
    }
}
