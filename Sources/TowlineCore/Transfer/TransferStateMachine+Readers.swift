/// The order of requests for bytes that a reader reads while the file downloads: such bytes are requested first.
extension TransferStateMachine {
    /// The distance in bytes within which a running connection reaches a byte sooner than a new connection would.
    static let nearby: Int64 = 512 << 10

    /// The first missing range of each window (`wanted`) that readers want, the most urgent first.
    private var awaited: [ByteRange] {
        wanted.compactMap { range in
            range.intersection(ledger.whole).flatMap { ledger.written.gaps(in: $0).first }
        }
    }

    /// Returns the next bytes that are neither written nor assigned to an attempt: some that a reader wants, else the
    /// first ones; `nil` if no such bytes are left.
    func nextGap() -> ByteRange? {
        let missing = ledger.missing
        for range in wanted {
            for gap in missing {
                if let part = gap.intersection(range) { return ByteRange(part.lowerBound, gap.upperBound) }
            }
        }
        return missing.first
    }

    /// Ensures that a connection is near the first byte that each reader waits for. If no connection is free, one that
    /// serves no reader is closed, and its remaining bytes are missing again. Idempotent.
    mutating func serveReaders(_ context: TransferContext) -> [TransferAction] {
        // If only a digest of each response reveals flipped bits, no response is cut, and bytes arrive in order.
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

    /// Returns the attempt that will soon write the byte at `offset`; `nil` if no attempt will.
    private func server(of offset: Int64) -> AttemptID? {
        live.first { attempt in
            guard let range = ledger.lease(of: attempt.plan.id), range.contains(offset) else { return false }
            let soon = Int64((attempt.estimator.rate ?? 0) / 2)
            return offset - range.lowerBound <= max(Self.nearby, soon)
        }?.plan.id
    }

    /// Returns the attempt to close, so that the byte at `offset` can be requested: one that would reach the byte much
    /// later, else the one with the most bytes left; `nil` if all attempts serve readers (`serving`).
    private func leastUseful(for offset: Int64, but serving: Set<AttemptID>) -> AttemptID? {
        let free = live.filter { !serving.contains($0.plan.id) }
        if let holder = free.first(where: { ledger.lease(of: $0.plan.id)?.contains(offset) == true }) {
            return holder.plan.id
        }
        func left(_ attempt: Attempt) -> Int64 { ledger.lease(of: attempt.plan.id)?.count ?? 0 }
        return free.max { (left($0), $1.plan.id.value) < (left($1), $0.plan.id.value) }?.plan.id
    }

    /// Starts an attempt for the bytes from `offset` to the end of the missing range there. If an attempt would deliver
    /// them later, its range is cut at `offset`. The `id` is `nil` if no source may get a request.
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
