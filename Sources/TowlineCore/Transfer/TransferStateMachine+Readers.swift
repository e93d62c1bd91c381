/// Bytes that somebody reads while they arrive are fetched ahead of the rest.
extension TransferStateMachine {
    /// A connection that has so little to bring before a byte brings it sooner than a new one would.
    static let nearby: Int64 = 512 << 10

    /// The bytes that readers want and that are not there, the most urgent first.
    private var awaited: [ByteRange] {
        wanted.compactMap { range in
            range.intersection(ledger.whole).flatMap { ledger.written.gaps(in: $0).first }
        }
    }

    /// The next gap that nobody is at: one that is read, else the first.
    func nextGap() -> ByteRange? {
        let missing = ledger.missing
        for range in wanted {
            for gap in missing {
                if let part = gap.intersection(range) { return ByteRange(part.lowerBound, gap.upperBound) }
            }
        }
        return missing.first
    }

    /// Sees to it that for each reader a connection is at the first byte that it waits for. Where none is free, one
    /// that brings nothing for a reader gives way; what it has not brought is missing again. Idempotent.
    mutating func serveReaders(_ context: TransferContext) -> [TransferAction] {
        // While a digest of each response is all that tells flipped bits, no response is cut: bytes come in their order.
        guard !wanted.isEmpty, !needsWholeAnswers else { return [] }
        var actions: [TransferAction] = []
        var serving: Set<AttemptID> = []
        for first in awaited.map(\.lowerBound) {
            if let near = server(of: first) {
                serving.insert(near)
                continue
            }
            if liveCount >= budget.target {
                guard let idle = leastUseful(for: first, but: serving) else { break }
                actions += dismiss(idle)
            }
            let (begun, id) = fetch(from: first, context)
            actions += begun
            if let id { serving.insert(id) }
        }
        return actions
    }

    /// Who will soon write that byte.
    private func server(of offset: Int64) -> AttemptID? {
        live.first { attempt in
            guard let range = ledger.lease(of: attempt.plan.id), range.contains(offset) else { return false }
            let soon = Int64((attempt.estimator.rate ?? 0) / 2)
            return offset - range.lowerBound <= max(Self.nearby, soon)
        }?.plan.id
    }

    /// Who gives way: who would come to that byte much later, else who has the most left to bring.
    private func leastUseful(for offset: Int64, but serving: Set<AttemptID>) -> AttemptID? {
        let free = live.filter { !serving.contains($0.plan.id) }
        if let holder = free.first(where: { ledger.lease(of: $0.plan.id)?.contains(offset) == true }) {
            return holder.plan.id
        }
        func left(_ attempt: Attempt) -> Int64 { ledger.lease(of: attempt.plan.id)?.count ?? 0 }
        return free.max { (left($0), $1.plan.id.value) < (left($1), $0.plan.id.value) }?.plan.id
    }

    /// An attempt for the bytes from there on, to the end of the gap or of the segment that they are cut from.
    private mutating func fetch(
        from offset: Int64, _ context: TransferContext
    ) -> (actions: [TransferAction], id: AttemptID?) {
        var actions: [TransferAction] = []
        guard let source = nextSource(context) else { return (actions, nil) }
        for lease in ledger.leases where lease.range.contains(offset) {
            actions += yield(lease.id, from: offset, to: source)
        }
        let gap = ledger.missing.first { $0.contains(offset) }
        guard let gap else { return (actions, nil) }
        let id = AttemptID(nextID)
        return (actions + start(ByteRange(offset, gap.upperBound), from: source, context), id)
    }
}
