import FaultServer
import Synchronization
import Testing
import TowlineCore
import TransferSimulation

@testable import TowlineEngine

/// Tests small files of a list: one request is enough, and every other case becomes a complete transfer.
@Suite("Small files of a list") struct SmallFileRunTests {
    static let length: Int64 = 50_000

    private func site(
        length: Int64 = length, rate: Int64? = nil, _ behaviour: Behaviour = .correct, more: [String: Resource] = [:]
    ) -> SimulatedSite {
        SimulatedSite(Resource(length: length, rate: rate, behaviour: behaviour), more: more, asList: true)
    }

    private func expectFile(_ site: SimulatedSite, _ outcome: Outcome) {
        #expect(outcome.succeeded, "\(outcome.message)")
        #expect(site.published() != nil)
        #expect(!site.hasPart)
    }

    @Test("one request, and the file is published at once", arguments: [1, 50_000, 1_000_000] as [Int64])
    func atOnce(_ length: Int64) throws {
        let site = site(length: length, rate: 50_000_000)
        site.storage.fail { $0 == .create ? TowlineError(.diskFailure, "no part file is needed") : nil }
        let outcome = try site.download()
        expectFile(site, outcome)
        #expect(site.server.requests.count == 1 && site.server.served == length && outcome.received == length)
    }

    @Test("a slow file is written as it arrives") func slow() throws {
        let site = site(rate: 20_000)
        expectFile(site, try site.download())
        #expect(site.server.requests.count == 1 && site.server.served == Self.length)
    }

    @Test("if the disk declines, the received bytes are used") func declined() throws {
        let site = site()
        site.storage.fail { [used = Once()] step in
            step == .publish && used.first() ? TowlineError(.diskFailure, "not at once") : nil
        }
        expectFile(site, try site.download())
        #expect(site.server.requests.count == 1)
    }

    /// The complete transfer that takes over must not count the response again.
    @Test("a declined file is one request and one response of its host") func declinedIsCountedOnce() throws {
        let site = site()
        site.storage.fail { $0 == .publish ? TowlineError(.diskFailure, "no space left") : nil }
        let board = HostBoard(clock: site.simulation.clock)
        let services = TransferServices(
            transport: site.server, storage: site.storage, board: board,
            limiter: RateLimiter(rate: 0, clock: site.simulation.clock), executor: site.simulation,
            after: site.simulation.timer, clock: site.simulation.clock)
        let item = BatchRoster.Item(number: 1, options: try site.options())
        let result = try site.simulation.run {
            let slot = await BatchSlots(BatchConcurrency(fixed: 1), clock: services.clock).take()
            return await SmallFileRun(item, services, BatchRelay(item, observer: NoObserver(), slot: slot)).result()
        }
        guard case .failure(let error) = result else {
            Issue.record("published")
            return
        }
        #expect(error.code == .diskFailure)
        let standing = board.state(of: item.options.url.origin)
        #expect(standing.connections == 0 && standing.answers == 1)
    }

    @Test("a redirect is followed, and the name comes from the list") func redirect() throws {
        let target = Resource(length: Self.length)
        let site = site(.always(.redirect(302, to: "/other.bin")), more: ["/other.bin": target])
        let outcome = try site.download()
        #expect(outcome.succeeded, "\(outcome.message)")
        #expect(site.published([target.version]) != nil)
        #expect(site.server.requests.count == 2)
    }

    @Test("a transient status is retried, a permanent one is an error") func statuses() throws {
        let passing = site(.first(2, .status(503)))
        expectFile(passing, try passing.download())
        let staying = site(.always(.status(404)))
        #expect(try staying.download().code == .notFound)
        // The refusal is confirmed once, by a request without Range.
        #expect(!staying.hasFile && !staying.hasPart && staying.server.requests.count == 2)
    }

    @Test("a cut response is completed or requested again", arguments: [0, 1, 25_000] as [Int64])
    func cut(_ count: Int64) throws {
        let site = site(.first(1, .shortBody(after: count)))
        expectFile(site, try site.download())
        #expect(site.server.served <= Self.length + count)
    }

    @Test("a wrong checksum publishes nothing", arguments: [1, 2] as [UInt8]) func checksum(_ byte: UInt8) throws {
        let site = site()
        let checksum = Checksum(algorithm: .sha256, value: Array(repeating: byte, count: 32))
        #expect(try site.download { $0.checksum = checksum }.code == .checksumMismatch)
        #expect(!site.hasFile)
    }

    @Test("a stop before the response leaves no file") func stop() throws {
        let site = site(.always(.stallBeforeHead))
        let outcome = try site.download { _ in
        } during: { [simulation = site.simulation] runner, _ in
            await simulation.sleep(for: .milliseconds(500))
            runner.stop(.pause)
        }
        #expect(outcome.code == .cancelled)
        #expect(!site.hasFile && !site.hasPart)
    }

    /// Small files claim no bytes: a crash costs the file that was under way.
    @Test("a crash at any moment leaves the complete file or no file", arguments: [false, true])
    func crashes(_ powerCut: Bool) throws {
        for milliseconds in 0..<60 {
            let site = site(rate: 2_000_000)
            try site.downloadAndCrash(after: .milliseconds(milliseconds), powerCut: powerCut)
            #expect(!site.hasFile || site.published() != nil)
            expectFile(site, try site.download())
        }
    }
}

/// Returns `true` only the first time.
private final class Once: Sendable {
    private let isUsed = Atomic(false)

    func first() -> Bool { !isUsed.exchange(true, ordering: .relaxed) }
}

/// Ignores everything.
private final class NoObserver: BatchObserver {
    func started(_ number: Int, _ options: DownloadOptions) {}
    func progressed(_ number: Int, _ snapshot: TransferSnapshot) {}
    func noticed(_ number: Int, _ notice: TransferNotice) {}
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {}
}
