import Testing
import TowlineCore

/// Drives a state machine by value, with the server's answers and the machine's resulting actions.
struct TransferScript {
    static let url = "https://example.org/file.iso"
    /// The complete length of the file in most tests.
    static let length: Int64 = 64 << 20
    /// The checksum that the user gives.
    static let sum = "sha256:" + String(repeating: "ab", count: 32)
    var machine: TransferStateMachine
    var now = Duration.zero
    var progress: [AttemptID: AttemptProgress] = [:]
    /// The number of connections to the host that other transfers of the process have.
    var otherConnections = 0
    /// The sharing that the host's earlier answers allow.
    var sharing = ConnectionSharing.none
    /// The maximum number of connections that the host is known to allow; `nil` if unknown.
    var hostCeiling: Int?
    /// `true` if the transfer may open a connection of its own.
    var mayConnect = true
    /// `true` if the user set a rate limit.
    var isLimited = false
    /// `true` if other transfers receive bytes from the host.
    var othersWork = false
    /// `true` if the transfer has its slot in a batch.
    var hasSlot = true
    /// The time until which the host asked for no requests; `nil` if it did not ask.
    var hostNotBefore: Duration?
    /// The facts about the host that a redirect leads to.
    var elsewhere = TransferContext.Elsewhere()
    /// The facts about the mirrors' hosts.
    var mirrorHosts: [TransferContext.MirrorHost] = []
    /// The attempts that were started, in order.
    var plans: [AttemptPlan] = []
    /// All actions of the machine so far.
    var actions: [TransferAction] = []
    /// The number of times a part file was prepared.
    var prepared = 0
    /// The actions that the last event caused.
    var fresh: [TransferAction] = []

    init(_ change: (inout TransferTerms) -> Void = { _ in }) throws {
        var terms = TransferTerms(source: try HTTPURL(parsing: Self.url))
        terms.options.connections = 1
        change(&terms)
        machine = TransferStateMachine(terms: terms)
    }

    /// Creates a transfer whose file is also at `m1.example`, `m2.example` and so on.
    ///
    /// - Parameters:
    /// - connections: The maximum number in all.
    /// - checksum: `true` if the user gave one.
    init(mirrors: Int, connections: Int, checksum: Bool, tries: Int) throws {
        try self.init { terms in
            terms.options.connections = connections
            terms.options.maximumTries = tries
            terms.mirrors = (1...mirrors).compactMap { try? HTTPURL(parsing: "https://m\($0).example/file.iso") }
            if checksum { terms.options.checksum = try? Checksum(parsing: Self.sum) }
        }
    }

    /// Feeds an event. The tests perform by hand the steps that the runner performs at once (preparing).
    @discardableResult
    mutating func feed(_ event: TransferEvent) -> [TransferAction] {
        var context = TransferContext(
            now: now, progress: progress.map { ($0.key, $0.value) }, hostNotBefore: hostNotBefore,
            hostCeiling: hostCeiling,
            hostConnections: progress.count + otherConnections,
            sharing: sharing, mayConnect: mayConnect)
        context.mirrors = mirrorHosts
        context.elsewhere = elsewhere
        (context.othersWork, context.hasSlot, context.isLimited) = (othersWork, hasSlot, isLimited)
        fresh = machine.handle(event, context)
        actions += fresh
        for case .start(let plan) in fresh {
            plans.append(plan)
            progress[plan.id] = AttemptProgress(position: nil, received: 0)
        }
        if case .ended(let id, _) = event { progress[id] = nil }
        if case .prepared = event { prepared += 1 }
        return fresh
    }

    /// The last attempt that was started.
    var last: AttemptPlan { plans[plans.count - 1] }

    /// Answers an attempt with a head, judged as the engine would.
    @discardableResult
    mutating func answer(_ plan: AttemptPlan, _ status: Int, _ fields: [(String, String)] = []) -> [TransferAction] {
        let head = ResponseHead(status: status, fields: HTTPFields(fields))
        return feed(.answered(plan.id, ResponseEvaluator.verdict(on: head, to: plan.question)))
    }

    /// Answers the attempt that was started last with a head.
    @discardableResult
    mutating func answer(_ status: Int, _ fields: [(String, String)] = []) -> [TransferAction] {
        answer(last, status, fields)
    }

    /// Answers as a server that has the file: with the bytes an attempt asked for, or with the first `most` of them.
    mutating func give(
        _ plan: AttemptPlan, tag: String? = "\"a\"", length: Int64 = Self.length, most: Int64 = .max
    ) {
        let lower = plan.seam.lowerBound
        let upper = min(plan.lease.upperBound, length)
        let range = "bytes \(lower)-\(upper - lower > most ? lower + most - 1 : upper - 1)/\(length)"
        answer(plan, 206, [("Content-Range", range)] + (tag.map { [("ETag", $0)] } ?? []))
    }

    /// Marks everything up to `position` as written by an attempt.
    mutating func write(_ plan: AttemptPlan, to position: Int64) {
        progress[plan.id] = AttemptProgress(position: position, received: position - plan.lease.lowerBound)
    }

    /// Marks everything up to `position` as written by the attempt that was started last.
    mutating func write(to position: Int64) { write(last, to: position) }

    /// Ends an attempt.
    @discardableResult
    mutating func end(_ plan: AttemptPlan, _ result: AttemptResult) -> [TransferAction] {
        feed(.ended(plan.id, result))
    }

    /// Ends the attempt that was started last.
    @discardableResult
    mutating func end(_ result: AttemptResult) -> [TransferAction] { end(last, result) }

    /// Refuses the attempt that was started last with a status, or, if `status` is 0, fails it before a response.
    mutating func refuse(_ status: Int, _ kind: TransportFailure.Kind) {
        let plan = last
        guard status > 0 else { return _ = end(plan, .failed(TransportFailure(kind, "refused"))) }
        answer(status)
        end(plan, .cancelled)
    }

    /// Ends the attempts that the machine cancelled in the last step.
    mutating func endCancelled() {
        for case .cancel(let id) in fresh { feed(.ended(id, .cancelled)) }
    }

    /// Starts a download of `length` bytes with a strong tag, with `position` bytes written.
    mutating func begin(length: Int64, position: Int64, tag: String? = "\"a\"") {
        feed(.begin(nil))
        var fields = [("Content-Range", "bytes 0-\(length - 1)/\(length)")]
        if let tag { fields.append(("ETag", tag)) }
        answer(206, fields)
        let first = last
        feed(.prepared)
        write(first, to: position)
    }

    var ending: TransferEnding? {
        for case .finish(let ending) in actions { return ending }
        return nil
    }

    var failure: TowlineError? {
        if case .failed(let error) = ending { return error }
        return nil
    }

    var prepares: [PreparePlan] {
        actions.compactMap { if case .prepare(let plan) = $0 { plan } else { nil } }
    }

    func started(in actions: [TransferAction]) -> [AttemptPlan] {
        actions.compactMap { if case .start(let plan) = $0 { plan } else { nil } }
    }

    func notices(_ kind: TransferNotice.Kind) -> [TransferNotice] {
        actions.compactMap { action in
            if case .notice(let notice) = action, notice.kind == kind { notice } else { nil }
        }
    }
}

extension AttemptPlan {
    /// Returns the value of a request field; `nil` if it is not sent.
    func field(_ name: String) -> String? { fields.value(named: name) }
}

/// Returns a transport failure as the result of an attempt.
func cut(_ kind: TransportFailure.Kind = .bodyCut) -> AttemptResult {
    .failed(TransportFailure(kind, "connection reset"))
}
