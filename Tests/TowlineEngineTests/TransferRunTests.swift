import FaultServer
import Testing
import TowlineCore
import TransferSimulation

@testable import TowlineEngine

/// Tests complete transfers with a server, a disk and a clock in memory: cases that take hours or exact timing in
/// reality.
@Suite("Complete transfers") struct TransferRunTests {
    static let length: Int64 = 3_000_000

    private func site(rate: Int64? = nil, length: Int64 = length, _ behaviour: Behaviour = .correct) -> SimulatedSite {
        SimulatedSite(Resource(length: length, rate: rate, behaviour: behaviour))
    }

    private func expectFile(_ site: SimulatedSite, _ outcome: Outcome, _ comment: Comment? = nil) {
        #expect(outcome.succeeded, "\(outcome.message)")
        #expect(site.published() != nil, comment)
        #expect(!site.hasPart)
    }

    // MARK: Crashes

    /// Processes that end one after another, each a few milliseconds later than the one before: the file is right, and
    /// written bytes are not fetched again.
    @Test("a process may end at any moment", arguments: [1, 4], [false, true])
    func crashes(_ connections: Int, _ powerCut: Bool) throws {
        for step in 1...25 {
            let site = site(rate: 10_000_000)
            for crash in 1...4 {
                try site.downloadAndCrash(after: .milliseconds(step * crash * 5), powerCut: powerCut) {
                    $0.connections = connections
                }
                #expect(!site.hasFile || site.published() != nil)
            }
            expectFile(site, try site.download { $0.connections = connections }, "killed every \(step * 5) ms")
            guard !powerCut else { continue }
            // Each crash costs the bytes under way and the compared overlap.
            let lost = Int64(4 * connections) * (256 << 10)
            let served = site.server.served
            #expect(served <= Self.length + lost, "\(served) bytes, killed every \(step * 5) ms")
        }
    }

    @Test("a power cut costs the bytes since the last checkpoint") func powerCut() throws {
        let site = site(rate: 2_000_000, length: 80_000_000)
        try site.downloadAndCrash(after: .seconds(30), powerCut: true)
        let before = site.server.served
        #expect(before > 55_000_000)
        expectFile(site, try site.download())
        #expect(site.server.served - before < 80_000_000 - 30_000_000, "\(site.server.served - before)")
    }

    /// Without a sync no byte is durable, however many are written.
    @Test("a power cut after syncs that failed costs everything, and the file is right") func failedSyncs() throws {
        let site = site(rate: 2_000_000, length: 20_000_000)
        site.storage.fail { $0 == .synchronize ? TowlineError(.diskFailure, "input/output error") : nil }
        try site.downloadAndCrash(after: .seconds(8), powerCut: true)
        site.storage.fail { _ in nil }
        expectFile(site, try site.download())
    }

    // MARK: Waiting

    @Test("a wait that the server asks for is kept to the second", arguments: [1, 60, 3600])
    func retryAfter(_ seconds: Int) throws {
        let site = site(.first(1, .retryAfter("\(seconds)")))
        expectFile(site, try site.download())
        let times = site.server.requests.map(\.time)
        #expect(times.count == 2)
        let wait = times[1] - times[0] - SimulatedServer.roundTrip
        #expect(wait >= .seconds(seconds) && wait < .seconds(seconds + 1), "\(wait)")
    }

    @Test("waits between attempts double, up to a minute") func backoff() throws {
        let site = site(.always(.status(503)))
        let outcome = try site.download {
            $0.retryWait = .seconds(1)
            $0.maximumTries = 10
        }
        #expect(outcome.code == .transient)
        // The first refusal is confirmed at once, by a request without Range.
        let times = site.server.requests.map(\.time).dropFirst()
        #expect(times.count == 10)
        for (number, pair) in zip(times, times.dropFirst()).enumerated() {
            let wait = (pair.1 - pair.0 - SimulatedServer.roundTrip) / .seconds(1)
            let middle = min(60, Double(1 << number))
            #expect(wait > middle * 0.74 && wait < middle * 1.26 + 0.5, "wait \(number): \(wait) s")
        }
    }

    @Test("a change of network ends a wait, unless the server asked for it", arguments: [false, true])
    func networkChange(_ isAsked: Bool) throws {
        let site = site(.first(1, isAsked ? .retryAfter("100") : .status(503)))
        let outcome = try site.download {
            $0.retryWait = .seconds(100)
        } during: { runner, observer in
            await observer.wait { $0.wait != nil }
            runner.nudge(.available)
        }
        expectFile(site, outcome)
        let times = site.server.requests.map(\.time)
        #expect(isAsked == (times[1] - times[0] > .seconds(50)))
    }

    @Test("a stop ends a wait at once") func stopDuringWait() throws {
        let site = site(.always(.retryAfter("100000")))
        let begin = site.simulation.now
        let outcome = try site.download { _ in
        } during: { runner, observer in
            await observer.wait { $0.wait != nil }
            runner.stop(.pause)
        }
        #expect(outcome.code == .cancelled)
        #expect(site.simulation.now - begin < .seconds(5))
    }

    @Test("a silent connection is replaced after its time limit, and received bytes are kept") func stall() throws {
        let site = site(rate: 2_000_000, .first(1, .stall(after: 2_000_000)))
        expectFile(site, try site.download { $0.stallTimeout = .seconds(20) })
        let requests = site.server.requests
        #expect(requests.count == 2)
        let wait = requests[1].time - requests[0].time
        #expect(wait > .seconds(20) && wait < .seconds(23))
        #expect(site.server.served < Self.length + 100_000)
    }

    @Test("a server that sends no head costs one timer per second after two seconds") func noHead() throws {
        let site = site(.always(.stallBeforeHead))
        try site.downloadAndCrash(after: .seconds(60)) { $0.connection.headTimeout = .seconds(120) }
        #expect(site.server.requests.count == 1)
        #expect(site.simulation.timersFired < 100)
    }

    // MARK: Rates and connections

    @Test("a rate limit is kept", arguments: [1, 4]) func rateLimit(_ connections: Int) throws {
        let site = site(length: 20_000_000)
        let begin = site.simulation.now
        expectFile(
            site,
            try site.download {
                $0.rateLimit = 1_000_000
                $0.connections = connections
            })
        let seconds = (site.simulation.now - begin) / .seconds(1)
        #expect(seconds > 18.5 && seconds < 21.5, "\(seconds) s")
    }

    @Test("further connections are opened if they help; no byte is fetched twice") func furtherConnections() throws {
        let site = site(rate: 1_000_000, length: 40_000_000)
        let begin = site.simulation.now
        expectFile(site, try site.download { $0.connections = nil })
        #expect(site.simulation.now - begin < .seconds(20), "one connection takes 40 s")
        #expect(site.server.requests.count > 2)
        #expect(site.server.served < 40_000_000 + 4_000_000, "\(site.server.served)")
    }

    @Test("one connection means one") func oneConnection() throws {
        let site = site(rate: 1_000_000, length: 10_000_000)
        expectFile(site, try site.download())
        #expect(site.server.requests.count == 1)
    }

    // MARK: The disk

    @Test("a full disk ends the transfer, and received bytes are kept") func diskFull() throws {
        let site = site(rate: 10_000_000)
        site.storage.fail { step in
            guard case .write(let offset) = step, offset > 1_500_000 else { return nil }
            return TowlineError(.diskFull, "no space left")
        }
        let outcome = try site.download()
        #expect(outcome.code == .diskFull)
        #expect(site.hasPart && !site.hasFile)
        let before = site.server.served
        site.storage.fail { _ in nil }
        expectFile(site, try site.download())
        #expect(site.server.served - before < 1_700_000)
    }

    /// The response breaks twice. The output refuses bytes that are out of order.
    @Test("an output that takes bytes in order gets each byte once", arguments: [1, 4])
    func output(_ connections: Int) throws {
        let site = site(rate: 4_000_000, .first(2, .shortBody(after: 1_000_000)))
        let outcome = try site.download {
            $0.target = .standardOutput
            $0.connections = connections
        }
        #expect(outcome.succeeded, "\(outcome.message)")
        let bytes = site.storage.bytesInOrder
        #expect(Int64(bytes.count) == Self.length && FaultContent(seed: 1).firstMismatch(in: bytes, at: 0) == nil)
        #expect(!site.hasFile && !site.hasPart)
    }

    @Test("a file that cannot be published keeps its bytes") func publishFails() throws {
        let site = site()
        site.storage.fail { $0 == .publish ? TowlineError(.diskFailure, "input/output error") : nil }
        #expect(try site.download().code == .diskFailure)
        let before = site.server.served
        site.storage.fail { _ in nil }
        expectFile(site, try site.download())
        #expect(site.server.served == before)
    }

    /// Another file may take the name by the end, although it was free at the start.
    @Test("a name that was taken meanwhile", arguments: ExistingPolicy.allCases)
    func nameTaken(_ existing: ExistingPolicy) throws {
        let site = site(rate: 1_000_000)
        let path = SimulatedSite.directory + "/" + SimulatedSite.name
        let outcome = try site.download {
            $0.existing = existing
        } during: { [storage = site.storage] _, observer in
            await observer.wait { $0.heldBytes > 1_000_000 }
            storage.put(MemoryStorage.File(bytes: [1, 2, 3]), at: path)
        }
        let kept = site.storage.files[path]?.bytes == [1, 2, 3]
        switch existing {
        case .fail:
            #expect(outcome.code == .destinationExists && kept && site.hasPart)
        case .skip:
            #expect(outcome.succeeded && kept && !site.hasPart)
        case .overwrite, .update:
            expectFile(site, outcome)
        case .rename:
            #expect(outcome.succeeded && kept && site.published(name: "file (1).bin") != nil)
        }
    }

    // MARK: The file on the server

    @Test("versions of a file that changes during the download are never joined", arguments: [1, 4])
    func change(_ connections: Int) throws {
        let resource = Resource(
            Version(length: 10_000_000), rate: 2_000_000,
            switches: [ContentSwitch(.afterBodyBytes(1_500_000), to: Version(seed: 2, length: 10_000_000))])
        let site = SimulatedSite(resource)
        // A response that has begun continues with the old version; the next request gets the new one.
        try site.downloadAndCrash(after: .seconds(1)) { $0.connections = connections }
        let outcome = try site.download { $0.connections = connections }
        expectFile(site, outcome)
        // A second connection discovers the change before the crash.
        #expect(outcome.says(.restarted) || connections > 1, "\(outcome.notices)")
    }

    @Test("a finished file is not fetched again, but only for the same URL") func finished() throws {
        let site = site()
        expectFile(site, try site.download())
        let requests = site.server.requests.count
        #expect(try site.download().succeeded)
        #expect(site.server.requests.count == requests)
        // The same name from another URL.
        #expect(try site.download("/file.bin?other=1").code == .destinationExists)
    }
}
