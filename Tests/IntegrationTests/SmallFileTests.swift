import FaultServer
import Foundation
import Synchronization
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

@testable import TowlineDisk

/// A possible small file is one request without a state machine; any other answer becomes a transfer that continues it.
@Suite(.timeLimit(.minutes(2)))
struct SmallFileTests {
    private static let length: Int64 = 20_000

    private func get(
        _ site: Site, _ storage: CountingStorage, _ change: (inout DownloadOptions) -> Void = { _ in }
    ) async throws -> Outcome {
        await Download(try site.options(Site.path, change), storage: storage, isBatch: true).run()
    }

    /// Returns a site whose server runs `steps` before it answers correctly.
    private func site(_ steps: @escaping @Sendable (RequestContext) -> Reply) async throws -> Site {
        try await Site(Resource(length: Self.length, behaviour: Behaviour(steps)))
    }

    /// Repeats a test: on a busy machine an answer may be late, and its file a transfer's. One of the runs is in time.
    private func untilAtOnce(
        instead: SmallFileOutcome? = nil, at site: () async throws -> Site = { try await Site(length: Self.length) },
        _ body: (Site, CountingStorage) async throws -> Bool
    ) async throws {
        for _ in 0..<50 {
            let storage = CountingStorage(instead: instead)
            let isOver = try await Site.with(try await site()) { try await body($0, storage) }
            if isOver { return }
        }
        Issue.record("never at once")
    }

    @Test(arguments: [true, false]) func oneRequestOneFile(_ isNamed: Bool) async throws {
        try await untilAtOnce { site, storage in
            let outcome = try await get(site, storage) {
                if !isNamed { $0.target = .file(directory: site.scratch.path, name: nil) }
            }
            try site.expectFile(outcome)
            #expect(site.requests.count == 1 && outcome.received == Self.length)
            #expect(storage.made + storage.created == 1)
            // The same download again sends no request.
            let again = try await get(site, storage)
            guard case .success(let completed) = again.result, case .alreadyThere = completed.outcome else {
                Issue.record("\(again)")
                return true
            }
            #expect(site.requests.count == 1)
            return storage.made == 1
        }
    }

    /// A small file is one that would have no journal.
    @Test(arguments: [70_000, 700_000, (1 << 20) - 1]) func largerOnes(_ length: Int64) async throws {
        try await untilAtOnce(at: { try await Site(length: length) }) { site, storage in
            try site.expectFile(try await get(site, storage))
            #expect(site.requests.count == 1 && storage.made + storage.created == 1)
            return storage.made == 1
        }
    }

    /// Bytes that the disk has lost before the file had its name are requested again.
    @Test func itsBytesAreLost() async throws {
        try await untilAtOnce(instead: .lost) { site, storage in
            try site.expectFile(try await get(site, storage))
            #expect(site.requests.count == 1 + storage.declined && storage.created == 1)
            return storage.declined == 1
        }
    }

    /// The user's or the server's checksum is compared before the file gets its name. A mismatch becomes a transfer
    /// that has the received bytes.
    @Test(arguments: [true, false], [true, false]) func withAChecksum(_ isUsers: Bool, _ isRight: Bool) async throws {
        let digest = MessageDigest(.sha256)
        Version(length: Self.length).content.bytes(in: 0..<Self.length).withUnsafeBytes { digest.update($0) }
        let right = digest.finish(.sha256)
        let sum = try #require(Checksum(algorithm: .sha256, value: isRight ? right : right.map { ~$0 }))
        func make() async throws -> Site {
            try await site { context in
                guard !isUsers else { return context.correct }
                let value = Data(sum.value).base64EncodedString()
                return context.correct.head { $0.set("Repr-Digest", "sha-256=:\(value):") }
            }
        }
        try await untilAtOnce(at: make) { site, storage in
            let outcome = try await get(site, storage) { if isUsers { $0.checksum = sum } }
            #expect(site.requests.count == 1)
            guard isRight else {
                #expect(outcome.code == .checksumMismatch && storage.made == 0)
                #expect(site.scratch.names == [Site.name + ".tow-bad"])
                return true
            }
            try site.expectFile(outcome)
            #expect(outcome.says(.verified), "\(outcome.notices)")
            return storage.made == 1
        }
    }

    /// Returns a reply in chunks, as a server sends it that knows neither ranges nor the length.
    private func inChunks(_ context: RequestContext, _ length: Int64, _ end: Reply.Step) -> Reply {
        context.correct.head { head in
            head.status = 200
            for name in ["Content-Length", "Content-Range", "Accept-Ranges"] { head.remove(name) }
            head.set("Transfer-Encoding", "chunked")
        }.body([.chunks(context.version.content, 0..<length, size: 20_000), end])
    }

    /// The last chunk shows the length of the file at once.
    @Test func inChunks() async throws {
        try await untilAtOnce(at: { try await site { inChunks($0, Self.length, .lastChunk) } }) { site, storage in
            try site.expectFile(try await get(site, storage))
            #expect(site.requests.count == 1 && storage.made + storage.created == 1)
            return storage.made == 1
        }
    }

    /// Without the last chunk the body is not a file, however small.
    @Test func inChunksThatBreakOff() async throws {
        let site = try await site { context in
            context.request.index == 0 ? inChunks(context, 12_000, .close) : inChunks(context, Self.length, .lastChunk)
        }
        try await Site.with(site) { site in
            try site.expectFile(try await get(site, CountingStorage()) { $0.retryWait = .milliseconds(10) })
            // The client asks about the received bytes before it requests the complete file again.
            #expect((2...3).contains(site.requests.count))
        }
    }

    /// After a head has stated a length, an answer with the same tag that ends earlier is incomplete, even with an
    /// orderly end: it may be the chunks of a proxy whose own server failed.
    @Test func inChunksThatEndEarly() async throws {
        let site = try await site { context in
            switch context.request.index {
            case 0: context.correct.body([.reset])
            case 1: inChunks(context, 12_000, .lastChunk)
            default: context.correct
            }
        }
        try await Site.with(site) { site in
            try site.expectFile(try await get(site, CountingStorage()) { $0.retryWait = .milliseconds(10) })
            #expect(site.requests.count >= 3)
        }
    }

    /// A redirect is followed at once by the same request to the target; after a late redirect, or with a late answer,
    /// a transfer takes over.
    @Test(arguments: [false, true], [false, true]) func redirected(_ isLate: Bool, _ answersLate: Bool) async throws {
        func make() async throws -> Site {
            let target = Behaviour { context in
                answersLate ? Reply([.pause(.milliseconds(700))] + context.correct.steps) : context.correct
            }
            let redirect = Behaviour { _ in
                let reply = Reply(302, [("Location", "/there")], text: "there")
                return isLate ? Reply([.pause(.milliseconds(700))] + reply.steps) : reply
            }
            return try await Site(
                Resource(length: 1, behaviour: redirect),
                more: ["/there": Resource(length: Self.length, behaviour: target)])
        }
        try await untilAtOnce(at: make) { site, storage in
            let outcome = try await get(site, storage)
            #expect(outcome.succeeded, "\(outcome.message)")
            let content = Version(length: Self.length).content
            #expect(try content.firstMismatch(inFile: site.scratch.file(Site.name), length: Self.length) == nil)
            #expect(site.server.log.requests.map(\.path) == [Site.path, "/there"])
            #expect(storage.made + storage.created == 1)
            if isLate || answersLate { #expect(storage.created == 1) }
            return isLate || answersLate || storage.made == 1
        }
    }

    /// If the file cannot be published at once, its bytes are written in the usual way: no byte is requested twice.
    @Test func notAtOnce() async throws {
        try await untilAtOnce(instead: .declined) { site, storage in
            try site.expectFile(try await get(site, storage))
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= Self.length }
            #expect(storage.created == 1)
            #expect(site.requests.count == 1 && site.served == Self.length)
            return storage.declined == 1
        }
    }

    /// A late answer, and one with a late body, become a transfer that takes over the request.
    @Test(arguments: [false, true], [Duration.milliseconds(700), .milliseconds(30)])
    func late(_ isHeadThere: Bool, _ wait: Duration) async throws {
        let site = try await site { context in
            let content = context.version.content
            let body: [Reply.Step] = [.content(content, 0..<9000), .pause(wait), .content(content, 9000..<Self.length)]
            return isHeadThere ? context.correct.body(body) : Reply([.pause(wait)] + context.correct.steps)
        }
        try await Site.with(site) { site in
            let storage = CountingStorage()
            let outcome = try await get(site, storage)
            try site.expectFile(outcome)
            // The client may finish before the server has counted its last bytes.
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= Self.length }
            #expect(site.requests.count == 1 && site.served == Self.length)
            // An answer that a busy thread processes only when it is over does not count as late.
            if wait > .milliseconds(600) { #expect(storage.created == 1 && storage.made == 0) }
        }
    }

    /// The first bytes of an answer that then falls silent are not fetched again.
    @Test func silentAfterTheBeginning() async throws {
        let (length, there): (Int64, Int64) = (900_000, 600_000)
        let fault = Fault("silent") { context in
            context.correct.body([.content(context.version.content, 0..<there), .stall])
        }
        try await Site.with(try await Site(Resource(length: length, behaviour: .first(1, fault)))) { site in
            let outcome = try await get(site, CountingStorage()) {
                $0.stallTimeout = .seconds(1)
                $0.retryWait = .milliseconds(10)
                $0.connections = 1
            }
            try site.expectFile(outcome)
            // The bytes before the seam are compared.
            #expect(site.requests.count == 2 && outcome.received <= length + (16 << 10), "\(outcome.received)")
        }
    }

    /// A download that is stopped while it waits for its answer leaves no file; bytes of a body are kept as usual.
    @Test func stopped() async throws {
        let (asked, question) = AsyncStream<Void>.makeStream()
        let site = try await site { _ in
            question.finish()
            return Reply([.stall])
        }
        try await Site.with(site) { site in
            let download = Download(try site.options(), isBatch: true)
            async let outcome = download.run()
            for await _ in asked {}
            download.stop()
            #expect(await outcome.code == .cancelled)
            #expect(site.scratch.names.isEmpty && site.requests.count == 1)
        }
    }

    /// A file that takes the name while the answer is on its way is kept and reported. If the policy allows, the
    /// download continues with the received bytes.
    @Test(arguments: ExistingPolicy.allCases) func theNameIsTakenMeanwhile(_ policy: ExistingPolicy) async throws {
        let scratch = Mutex<Scratch?>(nil)
        let site = try await site { context in
            _ = try? scratch.withLock { $0 }?.write(Site.name, "mine")
            return context.correct
        }
        try await Site.with(site) { site in
            scratch.withLock { $0 = site.scratch }
            let storage = CountingStorage()
            let outcome = try await get(site, storage) { $0.existing = policy }
            switch policy {
            case .fail: #expect(outcome.code == .destinationExists)
            case .skip, .overwrite, .rename, .update: #expect(outcome.succeeded, "\(outcome.message)")
            }
            #expect((site.scratch.read(Site.name) == "mine") == !policy.replaces)
            let names = policy == .rename ? [Site.name, "file (1).bin"].sorted() : [Site.name]
            #expect(site.scratch.names == names)
            #expect(site.requests.count == 1 && storage.made == 0)
        }
    }

    /// Another process has begun a download of that name: the destination belongs to that process.
    @Test func aPartFileIsThereMeanwhile() async throws {
        let scratch = Mutex<Scratch?>(nil)
        let site = try await site { context in
            if let scratch = scratch.withLock({ $0 }) {
                rename(scratch.file("other"), scratch.file(Site.name + ".tow"))
            }
            return context.correct
        }
        try await Site.with(site) { site in
            try site.scratch.write("other", String(repeating: "x", count: 2 << 20))
            scratch.withLock { $0 = site.scratch }
            let storage = CountingStorage()
            let outcome = try await get(site, storage)
            #expect(outcome.succeeded && storage.made == 0, "\(outcome.message)")
            // No process has locked the part file, and it is long: it is set aside, not overwritten.
            #expect(site.scratch.names == [Site.name, Site.name + ".tow-aside"])
            #expect(site.requests.count == 1)
        }
    }

    /// Other answers are judged once, by the transfer, and only the transfer requests them again.
    /// The first request is repeated without Range.
    @Test(arguments: [(404, 2, TowlineError.Code.notFound), (503, 6, .transient), (403, 2, .refusedByServer)])
    func refusals(_ status: Int, _ requests: Int, _ code: TowlineError.Code) async throws {
        try await Site.with(try await site { _ in Reply(status, text: "no") }) { site in
            let storage = CountingStorage()
            let outcome = try await get(site, storage)
            #expect(outcome.code == code, "\(outcome.message)")
            #expect(site.requests.count == requests && storage.made == 0 && site.scratch.names.isEmpty)
        }
    }

    /// A body that is cut is requested again once.
    @Test func cut() async throws {
        let site = try await Site(
            Resource(
                length: Self.length,
                behaviour: .first(
                    1,
                    Fault("cut") { context in
                        context.correct.body([.content(context.version.content, 0..<5000), .reset])
                    })))
        try await Site.with(site) { site in
            let storage = CountingStorage()
            try site.expectFile(try await get(site, storage))
            #expect(site.requests.count == 2)
        }
    }

    /// Downloads with a rate limit or several sources, and long files, are never published at once.
    @Test(arguments: 1..<4) func others(_ which: Int) async throws {
        let length = which == 3 ? 1 << 20 : Self.length
        try await Site.with(try await Site(length: length)) { site in
            let storage = CountingStorage()
            let outcome = try await get(site, storage) {
                switch which {
                case 1: $0.rateLimit = 10_000_000
                case 2: $0.mirrors = [$0.url]
                default: break
                }
            }
            try site.expectFile(outcome)
            #expect(storage.made == 0 && storage.created == 1)
            #expect(site.requests.count == 1)
        }
    }
}
