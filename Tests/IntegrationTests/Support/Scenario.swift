import FaultServer
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

/// One row of the catalogue, or a part of one: a fault, when it occurs, and the required result.
struct Scenario: Sendable, CustomTestStringConvertible {
    /// The requests that the fault affects.
    enum Moment: Sendable {
        /// The first requests of a new download; later ones are answered correctly.
        case first(Int)
        /// Every request of a new download.
        case always
        /// The first requests after an interruption.
        case firstOfResume(Int)
        /// Every request after an interruption.
        case resume
    }

    /// The required result.
    enum End: Sendable {
        /// The right bytes.
        case file
        /// The right bytes, after starting over with a notice.
        case restartedFile
        /// The right bytes, resumed from the held bytes.
        case resumedFile
        /// One of these errors.
        case failure([TowlineError.Code])
        /// The right bytes, or one of these errors.
        case fileOr([TowlineError.Code])
    }

    let row: Int
    let fault: Fault
    let moment: Moment
    let end: End
    var connections = 1
    var says: TransferNotice.Kind?
    /// The maximum of body bytes that the server may send, in lengths of the file, after an interruption if there is
    /// one.
    var bound: Double = 8
    /// The rate of each connection in bytes per second; `nil` for no limit. Without a limit, a response that is cut has
    /// already filled large buffers of the kernel, which counts as served.
    var rate: Int64?
    /// `true` if a run without the fault succeeds afterwards.
    var recovers = true

    init(
        _ row: Int, _ fault: Fault, _ moment: Moment, _ end: End, connections: Int = 1,
        says: TransferNotice.Kind? = nil, bound: Double = 8, rate: Int64? = nil, recovers: Bool = true
    ) {
        self.row = row
        self.fault = fault
        self.moment = moment
        self.end = end
        self.connections = connections
        self.says = says
        self.bound = bound
        self.rate = rate
        self.recovers = recovers
    }

    var testDescription: String { "\(row) \(fault.name) \(moment) x\(connections)" }

    static let held: Int64 = 1_500_000

    /// Runs the scenario over a real connection and on a real disk.
    func play(length: Int64 = 3_000_000) async throws {
        try await Site.with(try await Site(Resource(length: length, rate: rate))) { site in
            try await play(at: site, length)
        }
    }

    /// Runs the scenario in memory.
    func simulate(asList: Bool, length: Int64 = 3_000_000) async throws {
        let site = SimulatedSite(Resource(length: length, rate: rate), asList: asList)
        try await play(at: site, length)
    }

    /// Returns whether the scenario can run in memory: it must not depend on the HTTP parser.
    var isSimulable: Bool {
        let asked = ["bytes=0-", "bytes=\(Self.held)-"]
        return asked.allSatisfy { range in
            let request = RequestInfo(connection: 0, target: Site.path, fields: [("Range", range)])
            let resource = ResourceDirectory([Site.path: Resource(length: 3_000_000)]).find(Site.path)
            return resource.map { fault.make($0.begin(request)).isSimulable } ?? false
        }
    }

    private func play(at site: any ScenarioSite, _ length: Int64) async throws {
        var first = 0
        switch moment {
        case .first(let count): site.set(.first(count, fault))
        case .always: site.set(.always(fault))
        case .firstOfResume(let count):
            first = try await site.leaveUnfinished(Self.held)
            site.set(.on(Set(first..<first + count), fault))
        case .resume:
            first = try await site.leaveUnfinished(Self.held)
            site.set(.always(fault))
        }
        let before = site.served
        let outcome = try await site.run {
            $0.connections = connections
            // Unless the fault is a stall, a busy machine that keeps the server silent must not cause one.
            if !fault.name.hasPrefix("stall") { $0.stallTimeout = .seconds(15) }
        }
        try check(outcome, site)
        if let says { #expect(outcome.says(says), "\(outcome.notices)") }
        let served = site.served - before
        #expect(Double(served) <= bound * Double(length), "\(served) bytes were served")
        guard !outcome.succeeded, recovers else { return }
        site.set(.correct)
        let second = try await site.run { _ in }
        #expect(second.succeeded, "\(second.message)")
        try site.checkLaw(second)
    }

    private func check(_ outcome: Outcome, _ site: any ScenarioSite) throws {
        try site.checkLaw(outcome)
        switch end {
        case .file: #expect(outcome.succeeded, "\(outcome.message)")
        case .restartedFile:
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(outcome.says(.restarted), "\(outcome.notices)")
        case .resumedFile:
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(!outcome.says(.restarted), "\(outcome.notices)")
        case .failure(let codes): #expect(outcome.code.map(codes.contains) ?? false, "\(outcome.result)")
        case .fileOr(let codes): #expect(outcome.code.map(codes.contains) ?? true, "\(outcome.result)")
        }
    }
}

/// A server and a directory for a scenario: real ones, or in memory.
protocol ScenarioSite: Sendable {
    /// The number of body bytes that the server sent.
    var served: Int64 { get }
    /// Answers all later requests with `behaviour`.
    func set(_ behaviour: Behaviour)
    /// Leaves an unfinished download with `count` bytes, and returns the number of requests so far.
    func leaveUnfinished(_ count: Int64) async throws -> Int
    /// Downloads the file.
    func run(_ change: (inout DownloadOptions) -> Void) async throws -> Outcome
    /// Checks that a success published exactly the server's version, and that a failure published no file.
    func checkLaw(_ outcome: Outcome) throws
}

extension Site: ScenarioSite {
    func set(_ behaviour: Behaviour) { server.set(behaviour, for: Site.path) }
    func leaveUnfinished(_ count: Int64) async throws -> Int { try await interrupt(after: count) }
    func run(_ change: (inout DownloadOptions) -> Void) async throws -> Outcome {
        try await download(Site.path, change)
    }
    func checkLaw(_ outcome: Outcome) throws { try law(outcome) }
}

extension SimulatedSite: ScenarioSite {
    var served: Int64 { server.served }
    func set(_ behaviour: Behaviour) { server.set(behaviour, for: Self.path) }
    func leaveUnfinished(_ count: Int64) async throws -> Int { try interrupt(after: count).requests }
    func run(_ change: (inout DownloadOptions) -> Void) async throws -> Outcome { try download(Self.path, change) }
    func checkLaw(_ outcome: Outcome) throws {
        if outcome.succeeded {
            #expect(published() != nil, "the file is no version of the server's: \(outcome.notices)")
            #expect(!hasPart, "no part file remains")
        } else {
            #expect(!hasFile, "a failed download has no final file: \(outcome.message)")
        }
    }
}
