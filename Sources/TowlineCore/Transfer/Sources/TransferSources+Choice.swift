/// Functions that choose the source (the primary URL or a mirror) for the next request of a transfer.
extension TransferSources {
    /// The hosts of the mirrors, in the order of the mirrors, so that the context of an event can describe each.
    var mirrorOrigins: [HTTPURL.Origin] { mirrors.map(\.resolved.origin) }

    /// Returns the number of connections of other transfers to the host of the primary source, which defines the file.
    func otherConnections(_ work: TransferWork, _ context: TransferContext) -> Int {
        var own = context.progress.count
        if !mirrors.isEmpty {
            own = context.progress.count {
                work.attempts[$0.id]?.plan.url.origin ?? primary.resolved.origin == primary.resolved.origin
            }
        }
        return max(0, context.hostConnections - own)
    }

    /// Returns whether the primary source may get a request now: it has not failed, and no wait applies.
    func mayAskPrimary(_ context: TransferContext) -> Bool {
        primary.leftOut == nil
            && max(primary.notBefore ?? .zero, context.hostNotBefore ?? .zero) <= context.now
    }

    /// Returns whether a mirror may get a request for missing bytes now.
    func mayAskMirror(_ evidence: TransferEvidence, _ work: TransferWork, _ context: TransferContext) -> Bool {
        guard evidence.mirrorRung(work.ledger) != nil, work.liveCount > 0 || !evidence.beginsAnew(work.ledger) else {
            return false
        }
        return mirrors.indices.contains { room(at: $0, share: work.budget.hostShare, context) > 0 }
    }

    /// Returns the number of connections that the mirror at `index` may have now; 0 if it is no longer used or has to
    /// wait. Connections of other downloads to its host count as well, as they do for the primary source.
    ///
    /// - Parameter share: the number of connections that all downloads from one host may have.
    func room(at index: Int, share: Int, _ context: TransferContext) -> Int {
        let mirror = mirrors[index]
        guard mirror.leftOut == nil, mirror.notBefore ?? .zero <= context.now else { return 0 }
        let ceiling = mirror.ceiling(at: context.now) ?? share
        guard context.mirrors.indices.contains(index) else { return ceiling }
        let host = context.mirrors[index]
        guard host.notBefore ?? .zero <= context.now else { return 0 }
        return min(ceiling, host.ceiling ?? .max, max(1, share - host.otherConnections))
    }

    /// Returns whether the download can continue without the primary source, from a mirror that has sent a valid range.
    func mirrorsGoOn(_ evidence: TransferEvidence, _ ledger: RangeLedger) -> Bool {
        !ledger.written.isEmpty && evidence.mirrorRung(ledger) != nil
            && mirrors.contains { $0.leftOut == nil && $0.hasWorked }
    }

    /// Returns the source for the next request: the one that is expected to deliver most over one more connection, if
    /// all connections to a source share its rate equally. A mirror with an unknown rate is tried first, with one
    /// connection. Returns `nil` if no source may get a request. `avoided` is not chosen.
    func next(
        _ evidence: TransferEvidence, _ work: TransferWork, besides avoided: SourceID? = nil, _ context: TransferContext
    ) -> SourceID? {
        let primaryIsFree = mayAskPrimary(context)
        guard !mirrors.isEmpty else { return primaryIsFree ? .primary : nil }
        var free: [(source: SourceID, room: Int)] = []
        // Without proof to join its bytes to the held bytes, the primary would have to start over.
        if primaryIsFree, evidence.joinRung(work.ledger) != nil || evidence.beginsAnew(work.ledger) {
            free.append((.primary, min(primary.ceiling(at: context.now) ?? .max, context.hostCeiling ?? .max)))
        }
        if evidence.mirrorRung(work.ledger) != nil {
            free += mirrors.indices.map { (.mirror($0), room(at: $0, share: work.budget.hostShare, context)) }
        }
        var best: (source: SourceID, share: Double, connections: Int)?
        for (source, room) in free where source != avoided {
            let own = work.live.filter { $0.plan.source == source }
            let origin = self[source].resolved.origin
            guard work.live.count(where: { $0.plan.url.origin == origin }) < room else { continue }
            let current = own.compactMap { $0.isAccepted ? $0.rates.recent.rate : nil }.max()
            let rate = current ?? self[source].rate
            if rate == nil, !self[source].hasWorked, !own.isEmpty, source != .primary { continue }
            let share = (rate ?? .infinity) / Double(own.count + 1)
            if let best, (best.share, -best.connections) >= (share, -own.count) { continue }
            best = (source, share, own.count)
        }
        return best?.source
    }

    /// Returns the earliest time at which a source with a wait may get a request; `nil` if no source has a wait.
    ///
    /// - Parameter canUseMirrors: `true` if bytes of mirrors can be joined to the written ones.
    func nextTry(canUseMirrors: Bool) -> Duration? {
        guard !mirrors.isEmpty else { return primary.notBefore }
        var times = canUseMirrors ? mirrors.filter { $0.leftOut == nil }.compactMap(\.notBefore) : []
        if primary.leftOut == nil, let notBefore = primary.notBefore { times.append(notBefore) }
        return times.min()
    }
}
