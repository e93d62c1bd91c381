import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Bytes received over http are not part of a file that is requested over https, unless a checksum of the user proves
/// them: the tag and the length over http have the same origin as the bytes.
@Suite(.serialized, .enabled(if: Thoroughness.areThere("/usr/bin/openssl")), .timeLimit(.minutes(4)))
struct PlainBytesTests {
    private static let length: Int64 = 3_000_000
    private static let held: Int64 = 2_000_000
    /// Returns a resource that has the same tag and length on every server.
    private static func resource(seed: UInt64) -> Resource {
        Resource(Version(seed: seed, length: length, etag: .strong("the-same")))
    }

    enum Proof: CaseIterable {
        case none
        /// A checksum that any bytes can be made to match.
        case forgeable
        case checksum

        func checksum() throws -> Checksum? {
            let bytes = FaultContent(seed: 1).bytes(in: 0..<PlainBytesTests.length)
            switch self {
            case .none: return nil
            case .forgeable: return Checksum(algorithm: .crc32c, value: CRC32C.bigEndian(bytes))
            case .checksum:
                let digest = MessageDigest(.sha256)
                bytes.withUnsafeBytes { digest.update($0) }
                return Checksum(algorithm: .sha256, value: digest.finish(.sha256))
            }
        }
    }

    /// Runs `body` with an https server that has the file of seed 1, and the file of the authority that it is trusted
    /// by.
    private func withSecureServer(_ body: (FaultServer, _ authority: String) async throws -> Void) async throws {
        let keys = try Scratch()
        let options = try await keys.makeTLS()
        let server = try await FaultServer.start([Site.path: Self.resource(seed: 1)], options: options)
        try await body(server, keys.file("chain.pem"))
        await server.stop()
    }

    /// A download that begins over http and is requested again over https, from another port. Only the bytes differ,
    /// and only if `seed` is 2.
    @Test(arguments: [1, 2] as [UInt64], Proof.allCases) func begunOverHTTP(_ seed: UInt64, _ proof: Proof) async throws
    {
        try await withSecureServer { secure, authority in
            let url = try HTTPURL(parsing: secure.url(Site.path))
            let checksum = try proof.checksum()
            try await Site.with(try await Site(Self.resource(seed: seed))) { site in
                let asked = try await site.interrupt(after: Self.held)
                #expect(site.hasPart && site.hasJournal)
                let outcome = try await site.download {
                    $0.url = url
                    $0.connection.certificateAuthorityFile = authority
                    $0.checksum = checksum
                }
                #expect(site.requests.count == asked, "no further request goes over http")
                try site.expectFile(outcome, Self.resource(seed: 1).version)
                let served = secure.log.bodyBytesServed(Site.path)
                if proof == .checksum, seed == 1 {
                    #expect(served < Self.length - Self.held + 300_000, "proven bytes are kept")
                } else {
                    #expect(served >= Self.length, "each byte came over https")
                }
                #expect(outcome.says(.restarted) == (proof != .checksum || seed == 2), "\(outcome.notices)")
            }
        }
    }

    /// The https run that discards the bytes is interrupted repeatedly: the bytes are not trusted afterwards either.
    @Test func interruptedBeforeABetterByteCame() async throws {
        try await withSecureServer { secure, authority in
            let url = try HTTPURL(parsing: secure.url(Site.path))
            try await Site.with(try await Site(Self.resource(seed: 2))) { site in
                try await site.interrupt(after: Self.held)
                let change: @Sendable (inout DownloadOptions) -> Void = {
                    $0.url = url
                    $0.connection.certificateAuthorityFile = authority
                    $0.maximumTries = 1
                }
                for status in [503, 200] {
                    secure.set(status == 200 ? .correct : .always(.status(status)), for: Site.path)
                    let outcome = try await site.download(Site.path, change)
                    #expect(outcome.succeeded == (status == 200), "\(outcome.message)")
                    if status == 503 { #expect(site.hasPart && !site.hasFile) }
                }
                #expect(try site.published([Self.resource(seed: 1).version]) != nil)
                #expect(secure.log.bodyBytesServed(Site.path) >= Self.length)
            }
        }
    }

    /// A checksum allowed a mirror over http, or the user a redirect. Without it, the bytes received that way are
    /// fetched over https.
    @Test(arguments: [true, false]) func broughtByAMirrorOrARedirect(isMirror: Bool) async throws {
        try await withSecureServer { secure, authority in
            let url = try HTTPURL(parsing: secure.url(Site.path))
            let checksum = try Proof.checksum.checksum()
            try await Site.with(try await Site(Self.resource(seed: 2))) { site in
                let plain = try HTTPURL(parsing: site.server.url(Site.path))
                let redirect = Behaviour.always(.redirect(to: site.server.url(Site.path)))
                secure.set(isMirror ? .always(.status(404)) : redirect, for: Site.path)
                try await site.interrupt(after: Self.held) {
                    $0.url = url
                    $0.connection.certificateAuthorityFile = authority
                    if isMirror {
                        $0.mirrors = [plain]
                        $0.checksum = checksum
                    } else {
                        $0.allowsDowngrade = true
                    }
                }
                #expect(site.hasPart && site.served >= Self.held)
                secure.set(.correct, for: Site.path)
                let outcome = try await site.download {
                    $0.url = url
                    $0.connection.certificateAuthorityFile = authority
                }
                try site.expectFile(outcome, Self.resource(seed: 1).version)
                #expect(outcome.says(.restarted))
                #expect(secure.log.bodyBytesServed(Site.path) >= Self.length)
            }
        }
    }
}
