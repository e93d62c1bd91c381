import FaultServer
import Synchronization
import Testing
import TowlineCore
import TransferSimulation

@testable import TowlineEngine

/// Tests complete lists with a server, a disk and a clock in memory.
@Suite("Complete lists") struct BatchRunnerTests {
    @Test("each entry is downloaded once, whatever its size") func allOfThem() throws {
        let list = SimulatedList(["a/*": Resource(length: 30_000), "b/*": Resource(length: 2_000_000)])
        try list.run((0..<200).map { $0 % 20 == 0 ? "b/\($0)" : "a/\($0)" })
        #expect(list.results.count == 200)
        for number in 1...200 { #expect(list.isRight(number), "entry \(number)") }
        #expect(list.storage.parts.isEmpty)
        #expect(list.server.served == 190 * 30_000 + 10 * 2_000_000)
    }

    @Test("no more run at once than the user says, and the list is read no faster", arguments: [1, 2, 8])
    func concurrency(_ most: Int) throws {
        let list = SimulatedList(["*": Resource(length: 2_000_000, rate: 1_000_000)])
        try list.run((0..<20).map { "\($0)" }) { $0.concurrency = most }
        #expect((1...20).allSatisfy(list.isRight))
        #expect(list.mostAtOnce == most, "\(list.mostAtOnce)")
        #expect(list.mostReadAhead <= most + BatchConcurrency.mostPublishing + 1)
    }

    @Test("entries that fail do not stop the others") func failures() throws {
        let list = SimulatedList([
            "good/*": Resource(length: 30_000), "gone/*": Resource(length: 30_000, behaviour: .always(.status(404))),
            "cut/*": Resource(length: 30_000, behaviour: .always(.shortBody(after: 100))),
        ])
        try list.run((0..<30).map { ["good", "gone", "cut"][$0 % 3] + "/\($0)" })
        for number in 1...30 {
            switch number % 3 {
            case 1: #expect(list.isRight(number), "entry \(number)")
            case 2: #expect(list.code(number) == .notFound)
            default: #expect(list.code(number) == .transient)
            }
        }
    }

    @Test("an invalid entry fails, and the others are downloaded") func unreadableEntry() throws {
        let list = SimulatedList(["*": Resource(length: 30_000)])
        try list.run(["1", nil, "3"])
        #expect(list.isRight(1) && list.isRight(3) && list.code(2) == .unusableURL)
    }

    @Test("a host that does not answer does not delay other hosts") func silentHost() throws {
        let list = SimulatedList([
            "silent/*": Resource(length: 30_000, behaviour: .always(.stallBeforeHead)),
            "good/*": Resource(length: 30_000),
        ])
        list.hosts = ["silent": "silent.example"]
        let begin = list.simulation.now
        try list.run((0..<40).map { $0 < 20 ? "silent/\($0)" : "good/\($0)" }) { $0.concurrency = 4 }
        #expect((21...40).allSatisfy(list.isRight))
        let last = try #require((21...40).compactMap { list.ends[$0] }.max())
        #expect(last - begin < .seconds(30), "the others were there after \(last - begin)")
    }

    @Test("an entry that appears twice is fetched once") func repeated() throws {
        let list = SimulatedList(["*": Resource(length: 30_000)])
        try list.run(Array(repeating: "same", count: 10))
        #expect((1...10).allSatisfy(list.isRight))
        #expect(list.server.requests.count == 1)
    }

    @Test("files of the same name are numbered in the order of the list") func names() throws {
        // The first of the files arrives last.
        let slow = Resource(Version(seed: 1, length: 30_000), rate: 10_000)
        let list = SimulatedList([
            "1/same": slow, "2/same": Resource(length: 30_000, seed: 2), "3/same": Resource(length: 30_000, seed: 3),
        ])
        try list.run(["1/same", "2/same", "3/same"]) { _ in
        } each: {
            $0.target = .file(directory: "/downloads", name: nil)
            $0.existing = .rename
        }
        for (number, name) in [(1, "same"), (2, "same (1)"), (3, "same (2)")] {
            let bytes = try #require(list.storage.files["/downloads/\(name)"]?.bytes)
            #expect(FaultContent(seed: UInt64(number)).firstMismatch(in: bytes, at: 0) == nil, "\(name)")
        }
    }

    @Test("a stopped list keeps its bytes, and a second run completes it") func stop() throws {
        let resources = ["*": Resource(length: 3_000_000, rate: 1_000_000)]
        let list = SimulatedList(resources)
        let entries = (0..<12).map { "\($0)" }
        try list.run(entries) {
            $0.concurrency = 4
        } each: {
            $0.connections = 1
        } during: { list, runner in
            await list.simulation.sleep(for: .milliseconds(2500))
            runner.stop()
        }
        #expect(list.results.values.allSatisfy { (try? $0.get()) == nil })
        #expect(list.storage.parts.count == 4)
        let before = list.server.served
        try list.run(entries)
        #expect((1...12).allSatisfy(list.isRight))
        #expect(list.server.served < before + 12 * 3_000_000 - 4 * 2_000_000)
    }

    @Test("a host that serves few at a time is asked for few, and every file arrives", arguments: [1, 3])
    func limitedHost(_ limit: Int) throws {
        let list = SimulatedList(["*": Resource(length: 30_000, behaviour: .always(.connectionLimit(limit)))])
        try list.run((0..<300).map { "\($0)" }) { _ in
        } each: {
            $0.maximumTries = 20
        }
        #expect((1...300).allSatisfy(list.isRight))
        let refused = list.server.requests.count { $0.status != 206 && $0.status != 200 }
        #expect(refused < 600, "\(refused) requests were refused")
    }

    @Test("after a crash in a list the rest is fetched", arguments: [false, true]) func crash(_ powerCut: Bool)
        throws
    {
        for milliseconds in stride(from: 10, to: 400, by: 30) {
            let list = SimulatedList([
                "s/*": Resource(length: 30_000), "l/*": Resource(length: 2_000_000, rate: 8_000_000),
            ])
            let entries = (0..<40).map { $0 % 4 == 0 ? "l/\($0)" : "s/\($0)" }
            try list.crash(entries, after: .milliseconds(milliseconds), powerCut: powerCut)
            try list.run(entries)
            #expect((1...40).allSatisfy(list.isRight), "after \(milliseconds) ms")
            #expect(list.storage.parts.isEmpty)
        }
    }
}

/// A list that is downloaded from a server in memory; each entry is a path.
private final class SimulatedList: BatchObserver {
    private struct State {
        var results: [Int: Result<CompletedTransfer, TowlineError>] = [:]
        var ends: [Int: Duration] = [:]
        var running = 0
        var mostAtOnce = 0
        var read = 0
        var mostReadAhead = 0
        var entries: [String?] = []
        var hosts: [String: String] = [:]
    }

    let simulation = Simulation()
    let storage = MemoryStorage()
    let server: SimulatedServer
    private let state = Mutex(State())

    init(_ resources: [String: Resource]) {
        let absolute = resources.map { path, resource in ("/" + path, resource) }
        server = SimulatedServer(Dictionary(uniqueKeysWithValues: absolute), in: simulation)
    }

    var results: [Int: Result<CompletedTransfer, TowlineError>] { state.withLock { $0.results } }
    var ends: [Int: Duration] { state.withLock { $0.ends } }
    var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }
    var mostReadAhead: Int { state.withLock { $0.mostReadAhead } }
    /// The host of all paths with that first component, instead of the usual one.
    var hosts: [String: String] {
        get { state.withLock { $0.hosts } }
        set { state.withLock { $0.hosts = newValue } }
    }

    func code(_ number: Int) -> TowlineError.Code? {
        if case .failure(let error)? = results[number] { error.code } else { nil }
    }

    /// Returns whether an entry succeeded and its file has the bytes of the server.
    func isRight(_ number: Int) -> Bool {
        guard case .success? = results[number], let entry = state.withLock({ $0.entries[number - 1] }),
            let version = server.version("/" + entry),
            let bytes = storage.files["/downloads/" + entry.replacing("/", with: "-")]?.bytes
        else { return false }
        return Int64(bytes.count) == version.length && version.content.firstMismatch(in: bytes, at: 0) == nil
    }

    func run(
        _ entries: [String?], _ change: (inout BatchOptions) -> Void = { _ in },
        each: @escaping @Sendable (inout DownloadOptions) -> Void = { _ in },
        during: (@Sendable (SimulatedList, BatchRunner) async -> Void)? = nil
    ) throws {
        let runner = makeRunner(entries, change)
        try simulation.run { [self] in
            async let change: Void? = during?(self, runner)
            await runner.run { self.next(each) }
            await change
        }
    }

    /// Starts to download, and ends the process after that time.
    func crash(_ entries: [String?], after time: Duration, powerCut: Bool) throws {
        let runner = makeRunner(entries) { _ in }
        try simulation.run { [self] in
            Task(executorPreference: simulation) { await runner.run { self.next { _ in } } }
            await simulation.sleep(for: time)
        }
        simulation.endProcess()
        server.endConnections()
        if powerCut { storage.losePower() } else { storage.kill() }
    }

    private func makeRunner(_ entries: [String?], _ change: (inout BatchOptions) -> Void) -> BatchRunner {
        state.withLock { state in
            let hosts = state.hosts
            state = State()
            (state.entries, state.hosts) = (entries, hosts)
        }
        var options = BatchOptions()
        change(&options)
        return BatchRunner(
            options: options, transport: server, storage: storage, observer: self, executor: simulation,
            after: simulation.timer, clock: simulation.clock)
    }

    private func next(_ each: (inout DownloadOptions) -> Void) -> BatchRunner.NextDownload {
        let (entry, hosts) = state.withLock { state -> (String??, [String: String]) in
            guard state.read < state.entries.count else { return (nil, [:]) }
            state.read += 1
            state.mostReadAhead = max(state.mostReadAhead, state.read - state.results.count)
            return (state.entries[state.read - 1], state.hosts)
        }
        guard let entry else { return .end }
        guard let path = entry else { return .failed(TowlineError(.unusableURL, "no URL")) }
        let host = hosts[String(path.prefix { $0 != "/" })] ?? "example.org"
        guard let url = try? HTTPURL(parsing: "http://\(host)/\(path)") else { return .end }
        var options = DownloadOptions(
            url: url, target: .file(directory: "/downloads", name: path.replacing("/", with: "-")))
        options.retryWait = .milliseconds(100)
        options.maximumTries = 5
        options.connection.headTimeout = .seconds(30)
        options.connection.proxy = ""
        each(&options)
        return .download(options)
    }

    func started(_ number: Int, _ options: DownloadOptions) {
        state.withLock { state in
            state.running += 1
            state.mostAtOnce = max(state.mostAtOnce, state.running)
        }
    }

    func progressed(_ number: Int, _ snapshot: TransferSnapshot) {}
    func noticed(_ number: Int, _ notice: TransferNotice) {}

    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>) {
        let now = simulation.now
        state.withLock { state in
            state.running -= 1
            state.results[number] = result
            state.ends[number] = now
        }
    }
}
