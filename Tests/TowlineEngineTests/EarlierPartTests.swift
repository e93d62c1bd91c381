import FaultServer
import Testing
import TowlineCore
import TransferSimulation

@testable import TowlineEngine

/// Tests that the bytes of an earlier version stay until the new version has as many, in complete transfers.
@Suite struct EarlierPartTests {
    private static let old = Version(seed: 1, length: 4_000_000)
    private static let new = Version(seed: 2, length: 4_100_000)
    private static let held: Int64 = 3_000_000

    private func reply(_ context: RequestContext, _ version: Version, cutAfter count: Int64? = nil) -> Reply {
        let reply = context.correct(of: version)
        guard let count else { return reply }
        return Reply(
            reply.steps.flatMap { step -> [Reply.Step] in
                guard case .content(let content, let range) = step else { return [step] }
                return [.content(content, range.lowerBound..<min(range.upperBound, range.lowerBound + count)), .reset]
            })
    }

    /// Returns a site with 3,000,000 held bytes of the old version, whose server then behaves as `next` says for each
    /// request, counted from 0.
    private func site(_ next: @escaping @Sendable (Int, RequestContext) -> Reply) throws -> SimulatedSite {
        let site = SimulatedSite(Resource(Self.old))
        let first = try site.interrupt(after: Self.held).requests
        site.server.set(Behaviour { next($0.request.index - first, $0) }, for: SimulatedSite.path)
        return site
    }

    @Test func aServerThatReturnsToTheOldVersionCostsNothing() throws {
        let site = try site { [self] index, context in
            // The second response confirms the change.
            index < 2 ? reply(context, Self.new, cutAfter: 500_000) : reply(context, Self.old)
        }
        let outcome = try site.download()
        #expect(outcome.succeeded && site.published([Self.old, Self.new]) == Self.old, "\(outcome.message)")
        let last = try #require(site.server.requests.last?.field("Range"))
        #expect(last.hasPrefix("bytes=298"), "\(last)")
        #expect(site.storage.versions.isEmpty)
    }

    @Test func theNewVersionReplacesTheOldOneOnceItHasAsManyBytes() throws {
        for count: Int64 in [500_000, 3_500_000] {
            let site = try site { [self] index, context in
                index < 2 ? reply(context, Self.new, cutAfter: count) : Reply([.reset])
            }
            _ = try site.download { $0.maximumTries = 2 }
            // The last bytes are saved to disk at the end of a run, and the next run removes the old ones.
            #expect(site.storage.versions.map(\.count) == [count, Self.held])
            // The next run continues the newer one.
            site.server.set(Behaviour { [self] in reply($0, Self.new) }, for: SimulatedSite.path)
            let outcome = try site.download()
            #expect(outcome.succeeded && site.published([Self.new]) == Self.new)
            #expect(site.server.requests.last?.field("Range")?.hasPrefix("bytes=\(count - 16_384)") == true)
            #expect(site.storage.versions.isEmpty)
        }
    }

    @Test func aKillLeavesOneThatTheNextRunContinues() throws {
        for time in stride(from: 0, through: 300, by: 7) {
            let site = try site { [self] _, context in
                Reply([.pause(.milliseconds(20))] + reply(context, Self.new).steps)
            }
            try site.downloadAndCrash(after: .milliseconds(time))
            guard site.published([Self.new]) == nil else { continue }
            #expect(site.storage.versions.contains { $0.count >= Self.held }, "\(time) ms")
            let outcome = try site.download()
            #expect(outcome.succeeded && site.published([Self.new]) == Self.new, "\(time) ms: \(outcome.message)")
        }
    }

    /// Two connections lead to one node, the next two to another one. The first response with a whole file ends it.
    @Test func versionsThatAlternateAreFetchedFromTheStart() throws {
        let site = try site { [self] index, context in
            reply(context, index % 4 < 2 ? Self.new : Self.old, cutAfter: index < 10 ? 0 : nil)
        }
        let outcome = try site.download { $0.maximumTries = 20 }
        #expect(outcome.succeeded, "\(outcome.message)")
        #expect(site.published([Self.old, Self.new]) != nil)
        #expect(site.server.requests.count < 20)
    }

    @Test func versionsThatAlternateForeverKeepTheOldBytes() throws {
        let site = try site { [self] index, context in
            reply(context, index % 4 < 2 ? Self.new : Self.old, cutAfter: index % 4 < 2 ? 200_000 : 0)
        }
        let outcome = try site.download { $0.maximumTries = 5 }
        #expect(!outcome.succeeded)
        #expect(site.storage.versions.contains { $0.count == Self.held }, "\(site.storage.versions.map(\.count))")
    }

    /// The new version breaks before its first byte, and the next response is an error: the old bytes still count.
    @Test func anErrorBeforeTheFirstNewByteIsRefused() throws {
        let site = try site { [self] index, context in
            index < 2 ? reply(context, Self.new, cutAfter: 0) : Reply(200, text: "{\"error\":\"busy\"}")
        }
        let outcome = try site.download { $0.maximumTries = 3 }
        #expect(!outcome.succeeded && !site.hasFile)
        #expect(site.storage.versions.contains { $0.count == Self.held })
    }

    /// The new version comes with a checksum, which is not that of the old one.
    @Test func theChecksumOfTheNewVersionDoesNotJudgeTheOldOne() throws {
        let site = try site { [self] index, context in
            guard index < 2 else { return reply(context, Self.old) }
            return reply(context, Self.new, cutAfter: 500_000).head {
                $0.set("Repr-Digest", "sha-256=:RBNvdz1Ax0ELFRHQJ9SfKJ7nMVHXOSXnHLYCnvzHVHQ=:")
            }
        }
        let outcome = try site.download()
        #expect(outcome.succeeded && site.published([Self.old]) == Self.old, "\(outcome.message)")
    }

    /// Without a validator nothing can be joined, so the file begins again; its old bytes stay meanwhile.
    @Test func bytesWithoutProofStay() throws {
        let version = {
            var version = Self.old
            (version.etag, version.lastModified) = (.absent, nil)
            return version
        }()
        let site = SimulatedSite(Resource(version))
        try site.interrupt(after: Self.held)
        site.server.set(Behaviour { [self] in reply($0, version, cutAfter: 500_000) }, for: SimulatedSite.path)
        _ = try site.download { $0.maximumTries = 2 }
        #expect(site.storage.versions.contains { $0.count == Self.held })
    }
}
