import TowlineCore
import TowlineEngine

/// A registry that simulates a slow disk, by delaying the results of `nextQueued` and some changes, and a full disk, by
/// refusing changes.
actor LateRegistry: Registry {
    private let base: any Registry
    private var keepsBack = false
    private var heldState: RegisteredState?
    private var kept: [CheckedContinuation<Void, Never>] = []
    private var readers: [CheckedContinuation<Void, Never>] = []
    private var isFull = false
    /// The number of refused changes.
    private(set) var refusals = 0

    /// The states that were written, in order.
    private(set) var written: [RegisteredState] = []

    init(_ base: any Registry) { self.base = base }

    /// Makes the disk full or not full. A full disk refuses all changes except additions.
    func fill(_ isFull: Bool = true) { self.isFull = isFull }

    /// Returns the number of refused changes since the last call.
    func takeRefusals() -> Int {
        defer { refusals = 0 }
        return refusals
    }

    private func checkSpace() throws(TowlineError) {
        guard isFull else { return }
        refusals += 1
        throw TowlineError(.diskFull, "the list cannot be written: no space left on device")
    }

    /// Delays all further results of `nextQueued` until `handOver` or `letGo` is called.
    func keepBack() { keepsBack = true }

    /// Waits until a result or a change is delayed.
    func somethingWasRead() async {
        if kept.isEmpty { await withCheckedContinuation { readers.append($0) } }
    }

    /// Delivers the delayed results. Later results are delayed again.
    func handOver() {
        for answer in kept { answer.resume() }
        kept = []
    }

    /// Delivers the delayed results and stops delaying.
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

    func add(_ downloads: [RegisteredDownload], check: @escaping RegistryDuplicateCheck)
        async throws(TowlineError) -> [RegistryAddition]
    { try await base.add(downloads, check: check) }

    func downloads(_ ids: [DownloadID]) async throws(TowlineError) -> [RegisteredDownload] {
        try await base.downloads(ids)
    }

    func find(identity: String) async throws(TowlineError) -> DownloadID? {
        try await base.find(identity: identity)
    }

    func names(matching short: ShortDownloadID, limit: Int) async throws(TowlineError) -> [DownloadID] {
        try await base.names(matching: short, limit: limit)
    }

    func downloads(named name: String, limit: Int) async throws(TowlineError) -> [RegisteredDownload] {
        try await base.downloads(named: name, limit: limit)
    }

    func page(_ query: DownloadQuery) async throws(TowlineError) -> RegistryPage { try await base.page(query) }

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

    /// Delays the next change to this state until `handOver` or `letGo` is called.
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

    func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineNote] {
        try await base.timeline(of: id, after: number, limit: limit)
    }

    func totals() async throws(TowlineError) -> DownloadTotals { try await base.totals() }

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
