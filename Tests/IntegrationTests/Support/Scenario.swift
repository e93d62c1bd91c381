import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// One row of the catalogue, or a part of one: a fault, when it strikes, and how that must end.
struct Scenario: Sendable, CustomTestStringConvertible {
    /// When the fault strikes.
    enum Moment: Sendable {
        /// The first requests of a new download; later ones are answered well.
        case first(Int)
        /// Every request of a new download.
        case always
        /// The first requests after an interruption.
        case firstOfResume(Int)
        /// Every request after an interruption.
        case resume
    }

    /// How it must end.
    enum End: Sendable {
        /// The right bytes.
        case file
        /// The right bytes, after starting over with a notice.
        case restartedFile
        /// The right bytes, going on with what was there.
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
    /// The most body bytes that the server may give, in lengths of the file, after an interruption if there is one.
    var bound: Double = 8
    /// Bytes per second of each connection. Without a limit, a response that is cut has already filled large buffers of
    /// the kernel, which counts as served.
    var rate: Int64?
    /// Whether a run without the fault ends well afterwards.
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

    func play(length: Int64 = 3_000_000) async throws {
        try await Site.with(try await Site(Resource(length: length, rate: rate))) { site in
            var first = 0
            switch moment {
            case .first(let count): site.server.set(.first(count, fault), for: Site.path)
            case .always: site.server.set(.always(fault), for: Site.path)
            case .firstOfResume(let count):
                first = try await site.interrupt(after: Self.held)
                site.server.set(.on(Set(first..<first + count), fault), for: Site.path)
            case .resume:
                first = try await site.interrupt(after: Self.held)
                site.server.set(.always(fault), for: Site.path)
            }
            let before = site.served
            let outcome = try await site.download {
                $0.connections = connections
                // Where nothing stalls, a busy machine that lets the server fall silent is no part of the scenario.
                if !fault.name.hasPrefix("stall") { $0.stallTimeout = .seconds(15) }
            }
            try check(outcome, site)
            if let says { #expect(outcome.says(says), "\(outcome.notices)") }
            let served = site.served - before
            #expect(Double(served) <= bound * Double(length), "\(served) bytes were served")
            if !outcome.succeeded, recovers { try await site.expectRecovery() }
        }
    }

    private func check(_ outcome: Outcome, _ site: Site) throws {
        switch end {
        case .file: try site.expectFile(outcome)
        case .restartedFile:
            try site.expectFile(outcome)
            #expect(outcome.says(.restarted), "\(outcome.notices)")
        case .resumedFile:
            try site.expectFile(outcome)
            #expect(!outcome.says(.restarted), "\(outcome.notices)")
        case .failure(let codes):
            #expect(outcome.code.map(codes.contains) ?? false, "\(outcome.result)")
            try site.law(outcome)
        case .fileOr(let codes):
            #expect(outcome.code.map(codes.contains) ?? true, "\(outcome.result)")
            try site.law(outcome)
        }
    }
}
