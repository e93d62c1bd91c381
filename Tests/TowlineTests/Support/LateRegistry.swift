import TowlineCore
import TowlineEngine

/// A registry whose answer to "what is next?" can be kept back after it was read, as a busy disk may; and that cannot be
/// written while its disk is full.
actor LateRegistry: Registry {
    private let base: any Registry
    private var keepsBack = false
    private var heldState: RegisteredState?
    private var kept: [CheckedContinuation<Void, Never>] = []
    private var readers: [CheckedContinuation<Void, Never>] = []
    private var isFull = false
    /// How often a change was refused.
    private(set) var refusals = 0

    /// The states that were written, in their order.
    private(set) var written: [RegisteredState] = []

    init(_ base: any Registry) { self.base = base }

    /// From now on, or from now on no more, nothing but additions can be written.
    func fill(_ isFull: Bool = true) { self.isFull = isFull }

    /// How often a change was refused since this was last asked.
    func takeRefusals() -> Int {
        defer { refusals = 0 }
        return refusals
    }

    private func checkSpace() throws(TowlineError) {
        guard isFull else { return }
        refusals += 1
        throw TowlineError(.diskFull, "the list cannot be written: no space left on device")
    }

    /// From now on, what was read is not handed over.
    func keepBack() { keepsBack = true }

    /// Returns when an answer was read and is kept back.
    func somethingWasRead() async {
        if kept.isEmpty { await withCheckedContinuation { readers.append($0) } }
    }

    /// Hands over what was kept back, and keeps back the next.
    func handOver() {
        for answer in kept { answer.resume() }
        kept = []
    }

    /// Hands over everything.
    func letGo() {
        keepsBack = false
        handOver()
    }

    func nextQueued(limit: Int, blockedHosts: Set<String>, blockedGroups: Set<String>) async throws(TowlineError)
        -> [RegisteredDownload]
    {
        let answer = try await base.nextQueued(limit: limit, blockedHosts: blockedHosts, blockedGroups: blockedGroups)
        guard keepsBack else { return answer }
        await withCheckedContinuation { continuation in
            kept.append(continuation)
            for reader in readers { reader.resume() }
            readers = []
        }
        return answer
    }

    nonisolated var notices: [String] { base.notices }

    func add(_ downloads: [RegisteredDownload]) async throws(TowlineError) -> [RegistryAddition] {
        try await base.add(downloads)
    }

    func downloads(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload] {
        try await base.downloads(ids)
    }

    func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID] {
        try await base.names(matching: short, limit: limit)
    }

    func page(_ query: RegistryQuery) async throws(TowlineError) -> RegistryPage { try await base.page(query) }

    func apply(_ changes: [RegistryChange]) async throws(TowlineError) -> [RegistryOutcome] {
        if let heldState, changes.contains(where: { $0.state?.state == heldState }) {
            self.heldState = nil
            await withCheckedContinuation { continuation in
                kept.append(continuation)
                for reader in readers { reader.resume() }
                readers = []
            }
        }
        try checkSpace()
        written += changes.compactMap { $0.state?.state }
        return try await base.apply(changes)
    }

    /// The next change to that state is written only when it is let go.
    func holdBack(_ state: RegisteredState) { heldState = state }

    func move(_ id: DownloadID, before: DownloadID?) async throws(TowlineError) {
        try await base.move(id, before: before)
    }

    func remove(
        _ ids: [DownloadID], onlyFrom state: RegisteredState?
    ) async throws(TowlineError) -> [RegistryOutcome] {
        try checkSpace()
        return try await base.remove(ids, onlyFrom: state)
    }

    func claim(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload] {
        try checkSpace()
        let claimed = try await base.claim(ids)
        written += claimed.map { _ in .active }
        return claimed
    }

    func changeAll(from states: Set<RegisteredState>, to state: RegisteredState, group: String?)
        async throws(TowlineError) -> Int
    { try await base.changeAll(from: states, to: state, group: group) }

    func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineEntry] {
        try await base.timeline(of: id, after: number, limit: limit)
    }

    func totals() async throws(TowlineError) -> RegistryTotals { try await base.totals() }

    func setValue(_ value: String?, for name: String) async throws(TowlineError) {
        try checkSpace()
        try await base.setValue(value, for: name)
    }

    func values(prefix: String) async throws(TowlineError) -> [String: String] { try await base.values(prefix: prefix) }

    func hostKnowledge() async throws(TowlineError) -> [String: String] { try await base.hostKnowledge() }

    func setHostKnowledge(_ knowledge: String, for origin: String) async throws(TowlineError) {
        try await base.setHostKnowledge(knowledge, for: origin)
    }

    func close() async { await base.close() }
}
