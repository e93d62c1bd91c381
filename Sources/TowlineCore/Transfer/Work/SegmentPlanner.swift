/// The planner of a transfer's requests: chooses their sources, their bytes, and the proof that these fit the written
/// bytes. It records the requests in the transfer's `TransferWork`.
struct SegmentPlanner {
    let sources: TransferSources
    let evidence: TransferEvidence
    let context: TransferContext

    var terms: TransferTerms { evidence.terms }

    /// The number of additional connections that may request the last bytes of a file a second time, although more
    /// connections do not increase the rate.
    private static let lastRivals = 4

    // MARK: One request

    /// The URL and the connection of a request that follows a redirect, shares a connection, or omits the Range field.
    /// The default values are those of all other requests.
    struct Route {
        /// The URL to request; `nil`: the URL at the end of the source's redirects.
        var url: HTTPURL?
        /// The URLs that redirected to `url`, in order.
        var chain: [HTTPURL] = []
        /// The way in which the request shares its connection with other requests.
        var sharing = ConnectionSharing.none
        /// `true` to omit the Range field from the request.
        var isPlain = false
    }

    /// Creates and records an attempt for the bytes `lease`, and returns the action that starts it.
    func start(
        _ lease: ByteRange, isRace: Bool = false, from source: SourceID = .primary, via route: Route = Route(),
        _ work: inout TransferWork
    ) -> [TransferAction] {
        let id = AttemptID(work.nextID)
        work.nextID += 1
        let isFirst = evidence.representation == nil
        let confirms = evidence.changes.claim != nil && source == .primary
        // If the response to a confirmation has the held version, all of its bytes that are held are compared.
        let overlap =
            isFirst
            ? 0
            : confirms ? lease.lowerBound : route.isPlain ? 0 : overlap(before: lease, from: source, work.ledger)
        // The bytes to compare with are no longer held.
        guard !lease.isEmpty || overlap > 0 else { return [] }
        let target = route.url ?? sources[source].resolved
        // A third party may have named the source. Requests that follow from its URL carry no secret of the user.
        let isLedByUser = sources[source].url.origin == terms.source.origin
        let isOurs = target.origin == terms.source.origin && isLedByUser
        let isDowngraded = target.scheme == .http && (sources.redirects.hasLeftTLS || terms.source.scheme == .https)
        var asked = question(
            lease, overlap: overlap, isFirst: isFirst, from: source, isOurs: isOurs,
            isPlain: route.isPlain, atMost: route.sharing != .none ? SharingPolicy.smallLimit : nil, work.ledger)
        asked.nameOfURL = SafeFileName.ofURL(target, redirectedFrom: sources[source].url, named: asked.nameOfURL)
        // A request that repeats a refused one omits every field that a server could reject.
        if isFirst, !route.isPlain, source == .primary { asked.condition = evidence.existing?.condition(at: target) }
        asked.isAtFirstOrigin = isOurs
        let part = evidence.part
        let plan = AttemptPlan(
            id: id, url: target, fields: fields(asked, isOurs: isOurs), sendsCredentials: isOurs,
            sendsNetrc: isOurs || isLedByUser && !isDowngraded, sendsStoredCookies: isLedByUser, question: asked,
            lease: lease, overlap: overlap,
            joinsDirectly: !isFirst && part.exists && !part.isReplaced && !route.isPlain,
            chain: route.chain, isConfirmation: evidence.changes.isConfirming, isRace: isRace,
            isFurther: work.liveCount > 0, source: source, sharing: route.sharing)
        work.begin(plan, at: context.now)
        return [.start(plan)]
    }

    // MARK: Further requests

    /// Starts the additional requests of a transfer that has at least one: comparisons with mirrors, bytes for readers
    /// of the incomplete file, parts of other ranges, and second requests for slow bytes.
    func startFurther(_ work: inout TransferWork) -> [TransferAction] {
        if evidence.changes.isConfirming, !work.live.contains(where: { $0.plan.isConfirmation }) {
            guard sources.mayAskPrimary(context), let gap = work.ledger.missing.first else { return [] }
            return start(gap, &work)
        }
        var served = compareMirrors(&work)
        served += serveReaders(&work)
        served += work.shed(evidence)
        // The downloads from a host share the limit of one download. Each has at least one connection.
        let others = sources.otherConnections(work, context)
        let room = work.budget.hostShare - others - work.liveCount
        // Only a download that is alone at the host can measure how many connections increase the rate.
        if others == 0, sources.mirrors.isEmpty, let finding = work.newFinding() {
            served.append(.report(.paysOff(finding), of: sources.primary.resolved.origin))
        }
        // If the server has not shown that it sends ranges, or refused one, one further range is requested at a time.
        let isRefused = work.further.rejections > 0 || evidence.ranges.doubt.refusals > 0
        let isTrial = evidence.ranges.support == .claimed || isRefused && sources.mirrors.isEmpty
        let most = work.budget.room(now: context.now)
        let target = isTrial ? min(most, work.live.count(where: \.isAccepted) + 1) : most
        let grown = grow(by: min(target - work.liveCount, room), &work)
        guard grown.isEmpty, room > 0 else { return served + grown }
        return served + raceLast(&work)
    }

    /// Starts up to `count` further attempts, as long as bytes are left for them.
    private func grow(by count: Int, _ work: inout TransferWork) -> [TransferAction] {
        var actions: [TransferAction] = []
        for _ in 0..<max(0, count) {
            let next = nextSegment(&work)
            guard !next.isEmpty else { break }
            actions += next
        }
        return settled(actions, &work)
    }

    /// Adjusts requests in `actions` that are not sent yet to their shortened ranges: a response that ends with its
    /// range needs no stop, and its connection can serve the next request.
    private func settled(_ actions: [TransferAction], _ work: inout TransferWork) -> [TransferAction] {
        var unsent: Set<AttemptID> = []
        for case .start(let plan) in actions { unsent.insert(plan.id) }
        var settled: [TransferAction] = []
        for action in actions {
            switch action {
            case .shrink(let id, _) where unsent.contains(id): continue
            case .start(var plan):
                if let lease = work.ledger.lease(of: plan.id), lease != plan.lease {
                    plan.lease = lease
                    plan.question = question(
                        lease, overlap: plan.overlap, isFirst: false, from: plan.source,
                        isOurs: plan.sendsCredentials, work.ledger)
                    plan.fields = fields(plan.question, isOurs: plan.sendsCredentials)
                    work.attempts.change(plan.id) { ($0.plan, $0.bound) = (plan, lease.upperBound) }
                }
                settled.append(.start(plan))
            default: settled.append(action)
            }
        }
        return settled
    }

    /// Starts an attempt for bytes that no attempt has; else for half of the assigned range that would end last; else a
    /// second request for the bytes of the slowest attempt.
    private func nextSegment(_ work: inout TransferWork) -> [TransferAction] {
        guard let source = sources.next(evidence, work, context) else { return [] }
        if let gap = work.nextGap() { return start(work.atFront(gap, evidence), from: source, &work) }
        let policy = work.splitPolicy
        let runners = work.splittable(evidence, context)
        if let cut = work.frontCut(runners, evidence) ?? policy.cut(runners) {
            return work.yield(
                cut.victim, from: cut.segment.lowerBound, to: source, rung: evidence.mirrorRung(work.ledger),
                now: context.now) + start(cut.segment, from: source, &work)
        }
        return race(runners, policy, source, &work)
    }

    // MARK: Races

    /// Requests the bytes of slow connections a second time at the end of the file, over a few more connections than
    /// usual.
    private func raceLast(_ work: inout TransferWork) -> [TransferAction] {
        guard work.pace.typicalRate != nil, evidence.ranges.support == .works, work.ledger.missing.isEmpty,
            work.liveCount < min(work.budget.ceiling, work.budget.target + Self.lastRivals),
            let source = sources.next(evidence, work, context)
        else { return [] }
        return race(work.splittable(evidence, context), work.splitPolicy, source, &work)
    }

    /// Starts a race for the last bytes of a file: a second request for those of the slowest attempt, at another source
    /// if possible.
    ///
    /// If only a checksum proves the bytes, two sources never write the same range: wrong bytes, which are not hashed,
    /// could overwrite bytes that were already hashed. A slow mirror is then replaced instead of raced.
    private func race(
        _ runners: [SplitPolicy.Runner], _ policy: SplitPolicy, _ free: SourceID, _ work: inout TransferWork
    ) -> [TransferAction] {
        guard let slowest = work.slowestToRace(runners, policy, context) else { return [] }
        let slow = work.attempts[slowest.id]?.plan.source ?? .primary
        let other = sources.mirrors.isEmpty ? free : sources.next(evidence, work, besides: slow, context) ?? free
        guard evidence.mirrorRung(work.ledger) == .checksum, slow != .primary || other != .primary else {
            return start(slowest.remaining, isRace: true, from: other, &work)
        }
        if slow != .primary, other != slow {
            // Received bytes that are not written yet are requested again as well.
            let all = work.ledger.lease(of: slowest.id) ?? slowest.remaining
            return work.dismiss(slowest.id) + start(all, from: other, &work)
        }
        guard slow == .primary, free == .primary else { return [] }
        return start(slowest.remaining, isRace: true, &work)
    }

    // MARK: Samples of mirrors

    /// Requests bytes that the primary source has delivered from each mirror that works and was not asked yet, to
    /// compare the mirror with the primary.
    private func compareMirrors(_ work: inout TransferWork) -> [TransferAction] {
        guard !sources.mirrors.isEmpty, evidence.mirrorRung(work.ledger) != nil, let end = work.sampleEnd else {
            return []
        }
        var actions: [TransferAction] = []
        for (index, mirror) in sources.mirrors.enumerated() where mirror.sample == .open && mirror.hasWorked {
            let isUnderWay = work.live.contains { $0.plan.source == .mirror(index) && $0.plan.isComparison }
            let overlap = overlap(before: ByteRange(end, end), from: .mirror(index), work.ledger)
            guard !isUnderWay, overlap > 0,
                work.live.count(where: { $0.plan.url.origin == mirror.resolved.origin })
                    < sources.room(at: index, share: work.budget.hostShare, context)
            else { continue }
            actions += start(ByteRange(end, end), from: .mirror(index), &work)
        }
        return actions
    }

    // MARK: Readers

    /// Ensures that a connection is near the first byte that each reader waits for. If no connection is free, one that
    /// serves no reader is closed, and its remaining bytes are missing again. Idempotent.
    private func serveReaders(_ work: inout TransferWork) -> [TransferAction] {
        // If only a digest of each response reveals flipped bits, no response is cut, and bytes arrive in order.
        guard !work.wanted.isEmpty, !evidence.needsWholeResponses else { return [] }
        var actions: [TransferAction] = []
        var serving: Set<AttemptID> = []
        for first in work.awaited.map(\.lowerBound) {
            if let near = work.server(of: first) {
                serving.insert(near)
                continue
            }
            if work.liveCount >= work.budget.target {
                guard let idle = work.leastUseful(for: first, but: serving) else { break }
                actions += work.dismiss(idle)
            }
            let (begun, id) = fetch(from: first, &work)
            actions += begun
            if let id { serving.insert(id) }
        }
        return actions
    }

    /// Starts an attempt for the bytes from `offset` to the end of the missing range there. If an attempt would deliver
    /// them later, its range is cut at `offset`. The `id` is `nil` if no source may get a request.
    private func fetch(from offset: Int64, _ work: inout TransferWork) -> (actions: [TransferAction], id: AttemptID?) {
        var actions: [TransferAction] = []
        guard let source = sources.next(evidence, work, context) else { return (actions, nil) }
        for lease in work.ledger.leases where lease.range.contains(offset) {
            actions += work.yield(
                lease.id, from: offset, to: source, rung: evidence.mirrorRung(work.ledger), now: context.now)
        }
        guard let gap = work.ledger.missing.first(where: { $0.contains(offset) }) else { return (actions, nil) }
        let id = AttemptID(work.nextID)
        return (actions + start(ByteRange(offset, gap.upperBound), from: source, &work), id)
    }
}
