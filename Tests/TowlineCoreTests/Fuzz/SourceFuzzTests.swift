import Testing
import TowlineCore

/// Runs thousands of downloads from several sources that fail, send wrong bytes and recover, as a seed determines. The
/// disk, the hash that follows it and the time are simulated values. No wrong byte may be published, no download may
/// wait for ever, and a download must succeed if one of its sources is correct and reliable.
@Suite("Fuzz: sources")
struct SourceFuzzTests {
    @Test func everySeedKeepsTheLaw() throws {
        let runs = max(1, Fuzzer.runs / 20)
        for run in 0..<runs {
            var world = try World(seed: UInt64(truncatingIfNeeded: Fuzzer.seed &+ run))
            if let problem = world.run() {
                Issue.record("seed \(Fuzzer.seed &+ run): \(problem)\n\(world.story)")
                return
            }
        }
        print("fuzz: sources: \(runs) runs")
    }
}

/// The behaviour of a source.
private struct Behaviour {
    /// `true` if its bytes are those of the file.
    var isRight = true
    /// `true` if it sends the entity tag of the file.
    var hasTag = true
    /// The percentages of requests that fail with a transient error, and of responses that break off.
    var failing = 0
    var breaking = 0
    /// `true` if it never works: it refuses connections, has no such file or ignores ranges.
    var isDead = false
    var isMissing = false
    var ignoresRanges = false
    /// The maximum number of bytes that it sends in one response.
    var most: Int64 = 1 << 40

    var isWell: Bool { isRight && hasTag && !isDead && !isMissing && !ignoresRanges }
    /// `true` if it also needs no retries.
    var isSteady: Bool { isWell && failing == 0 && breaking == 0 }
}

/// One download and everything around it.
private struct World {
    static let length: Int64 = 8 << 20
    static let whole = ByteRange(0, length)

    private var random: Generator
    private var script: TransferScript
    private let sources: [String: Behaviour]
    private let hasChecksum: Bool
    private let mustSucceed: Bool
    /// The byte ranges on the disk, and those of them that differ from the file.
    private var disk = ByteRangeSet()
    private var wrong = ByteRangeSet()
    /// The number of bytes hashed from the front, and whether some of them were wrong at that time.
    private var hashed: Int64 = 0
    private var hashedWrong = false
    private var answered: Set<AttemptID> = []
    private var over: Set<AttemptID> = []
    private var cancelled: [AttemptID] = []
    /// The end of each response, as a file offset.
    private var ends: [AttemptID: Int64] = [:]
    private var seen = 0

    init(seed: UInt64) throws {
        var random = Generator(seed: seed)
        hasChecksum = random.below(3) > 0
        var sources: [String: Behaviour] = [:]
        let count = 1 + random.below(4)
        for number in 0..<count {
            var behaviour = Behaviour()
            behaviour.failing = [0, 0, 20, 60][random.below(4)]
            behaviour.breaking = [0, 10, 40][random.below(3)]
            if number > 0, random.below(6) == 0 { behaviour.most = [40_000, 200_000, 1 << 20][random.below(3)] }
            switch random.below(number == 0 && !hasChecksum ? 7 : 8) {
            case 0: behaviour.isDead = true
            case 1: behaviour.isMissing = true
            case 6: behaviour.ignoresRanges = true
            case 7:
                behaviour.isRight = false
                // One that lies about its tag is found by a checksum alone.
                behaviour.hasTag = hasChecksum && random.below(2) == 0
            default: break
            }
            sources["s\(number).example"] = behaviour
        }
        self.sources = sources
        let first = sources["s0.example"] ?? Behaviour()
        let others = sources.filter { $0.key != "s0.example" }.values
        // If the first URL never works, the next source that answers determines the contents of the file.
        let firstWorks = !first.isDead && !first.isMissing
        let othersAreRight = others.allSatisfy { $0.isRight && !$0.ignoresRanges }
        // If the first source fails before its first byte, another source may determine the contents of the file.
        mustSucceed =
            firstWorks
            ? first.isWell && (first.isSteady || othersAreRight) || hasChecksum && others.contains(where: \.isSteady)
            : others.contains(where: \.isWell) && (othersAreRight || hasChecksum && others.contains(where: \.isSteady))
        let (connections, checksum) = (1 + random.below(6), hasChecksum)
        script = try TransferScript { terms in
            if let url = try? HTTPURL(parsing: "https://s0.example/f") { terms = TransferTerms(source: url) }
            terms.mirrors = (1..<max(1, count)).compactMap { try? HTTPURL(parsing: "https://s\($0).example/f") }
            terms.options.connections = connections
            terms.options.maximumTries = 40
            if checksum {
                terms.options.checksum = try? Checksum(parsing: "sha256:" + String(repeating: "ab", count: 32))
            }
        }
        self.random = random
    }

    /// The sources and the last 60 actions, for failure messages.
    var story: String {
        let told = script.actions.suffix(60).map { action in
            switch action {
            case .start(let plan): "start \(plan.id.value) \(plan.url.host) \(plan.lease) overlap \(plan.overlap)"
            default: "\(action)"
            }
        }
        return "\(sources), checksum: \(hasChecksum)\n" + told.joined(separator: "\n")
    }

    /// Runs the download. Returns a description of the problem; `nil` on success.
    mutating func run() -> String? {
        script.feed(.begin(nil))
        if let problem = digest() { return problem }
        for _ in 0..<6000 {
            if script.ending != nil { return judgement }
            // If no attempt is running, time passes until the state machine has work.
            if running.isEmpty, cancelled.isEmpty, let wake = TickPolicy.wakeAt(script.machine) {
                script.now = max(script.now, wake)
            }
            script.now += .milliseconds(20 + random.below(200))
            if let problem = step() { return problem }
        }
        let ledger = script.machine.ledger
        return
            "it does not end: \(ledger.written.ranges), \(ledger.leases), \(script.plans.count) requests, \(script.now)"
    }

    private var running: [AttemptPlan] { script.plans.filter { !over.contains($0.id) && !cancelled.contains($0.id) } }

    private var judgement: String? {
        switch script.ending {
        case .finished?: isOneFile ? nil : "wrong bytes were published"
        case .failed(let error)?: mustSucceed ? "failed although a source is well: \(error)" : nil
        default: "stopped by itself"
        }
    }

    /// Without a checksum, the contents are those of the source that answered first.
    private var isOneFile: Bool {
        disk.contains(World.whole) && (wrong.isEmpty || !hasChecksum && wrong.contains(World.whole))
    }

    private mutating func step() -> String? {
        for plan in running {
            if over.contains(plan.id) || cancelled.contains(plan.id) || random.below(4) == 0 { continue }
            act(plan)
            if let problem = digest() { return problem }
            if script.ending != nil { return nil }
        }
        script.feed(.tick)
        if let problem = digest() { return problem }
        // Cancelled attempts continue for a moment.
        for id in cancelled where random.below(3) == 0 {
            if let plan = script.plans.first(where: { $0.id == id }), answered.contains(id), random.below(2) == 0 {
                write(plan, atMost: 1 << 14, respectingLease: false)
            }
            cancelled.removeAll { $0 == id }
            end(plan: id, .cancelled)
            if let problem = digest() { return problem }
        }
        return script.plans.count > 4000 ? "\(script.plans.count) requests" : nil
    }

    private mutating func end(plan id: AttemptID, _ result: AttemptResult) {
        guard over.insert(id).inserted else { return }
        script.feed(.ended(id, result))
    }

    /// Performs the actions of the state machine.
    private mutating func digest() -> String? {
        while seen < script.actions.count {
            let action = script.actions[seen]
            seen += 1
            switch action {
            case .cancel(let id): if !over.contains(id) { cancelled.append(id) }
            case .prepare(let plan):
                if plan.isReplacement {
                    (disk, wrong, hashed, hashedWrong) = (ByteRangeSet(), ByteRangeSet(), 0, false)
                }
                script.feed(.prepared)
            case .proceed(let id): answered.insert(id)
            case .withdraw: (hashed, hashedWrong) = (0, false)
            case .verify(let sums, _):
                let rest = ByteRange(hashed, World.length)
                let isRight = !hashedWrong && disk.contains(World.whole) && wrong.intersection(rest).isEmpty
                script.feed(
                    .verified(mismatches: isRight ? [] : sums.map { ChecksumMismatch(expected: $0, found: nil) }))
            case .publish:
                guard disk.contains(World.whole) else { return "a gap is published" }
                script.feed(.published)
            default: break
            }
        }
        hashAhead()
        return nil
    }

    /// Hashes written bytes from the front, now and then, as the follower does.
    private mutating func hashAhead() {
        guard hasChecksum, random.below(4) == 0 else { return }
        let end = script.machine.ledger.written.range(holding: 0)?.upperBound ?? 0
        guard end > hashed else { return }
        if !wrong.intersection(ByteRange(hashed, end)).isEmpty { hashedWrong = true }
        hashed = end
    }

    // MARK: Behaviour of sources

    private mutating func act(_ plan: AttemptPlan) {
        guard let source = sources[plan.url.host] else { return end(plan: plan.id, cut(.connectFailed)) }
        guard script.progress[plan.id]?.position != nil || answered.contains(plan.id) else {
            return answer(plan, source)
        }
        if random.below(100) < source.breaking { return end(plan: plan.id, cut()) }
        write(plan, atMost: Int64(1 + random.below(12 << 16)), respectingLease: true)
    }

    private mutating func answer(_ plan: AttemptPlan, _ source: Behaviour) {
        if source.isDead { return end(plan: plan.id, cut(.connectFailed)) }
        if random.below(100) < source.failing {
            if random.below(2) == 0 { return end(plan: plan.id, cut(.closedBeforeHead)) }
            script.answer(plan, 503, [("Retry-After", "1")])
            return
        }
        if source.isMissing {
            script.answer(plan, 404)
            return
        }
        let tag = source.hasTag ? "\"a\"" : "\"\(plan.url.host)\""
        let demands = plan.field("If-Range").map { $0 != tag } ?? false
        if source.ignoresRanges || demands || plan.field("Range") == nil {
            script.answer(plan, 200, [("Content-Length", "\(World.length)"), ("ETag", tag)])
        } else {
            let asked = min(plan.lease.upperBound, World.length)
            let upper = min(asked, max(0, plan.lease.lowerBound - plan.overlap) + source.most) - 1
            ends[plan.id] = upper + 1
            let range = "bytes \(plan.seam.lowerBound)-\(upper)/\(World.length)"
            script.answer(plan, 206, [("Content-Range", range), ("ETag", tag)])
            if plan.joinsDirectly { answered.insert(plan.id) }
        }
        guard plan.joinsDirectly, answered.contains(plan.id), plan.overlap > 0 else { return }
        let seam = plan.seam
        let isEqual = source.isRight ? wrong.intersection(seam).isEmpty : wrong.contains(seam)
        if !isEqual, !cancelled.contains(plan.id) { return end(plan: plan.id, .overlapDiffers) }
        if plan.isComparison {
            let received = min(plan.overlap, source.most)
            script.progress[plan.id] = AttemptProgress(position: plan.lease.lowerBound, received: received)
        }
    }

    private mutating func write(_ plan: AttemptPlan, atMost count: Int64, respectingLease: Bool) {
        guard let source = sources[plan.url.host], !over.contains(plan.id) else { return }
        let lease = script.machine.ledger.lease(of: plan.id)
        if respectingLease, lease == nil { return }
        let start = script.progress[plan.id]?.position ?? lease?.lowerBound ?? plan.lease.lowerBound
        let answerEnd = max(start, ends[plan.id] ?? .max)
        let limit = min(World.length, answerEnd, respectingLease ? lease?.upperBound ?? start : plan.lease.upperBound)
        let stop = min(limit, start + count)
        if stop > start {
            let range = ByteRange(start, stop)
            disk.insert(range)
            if source.isRight { wrong.remove(range) } else { wrong.insert(range) }
            script.progress[plan.id] = AttemptProgress(position: stop, received: stop - plan.lease.lowerBound)
            if respectingLease { script.feed(.tick) }
        }
        guard respectingLease, stop >= limit, !cancelled.contains(plan.id) else { return }
        let isAll = stop >= min(plan.lease.upperBound, World.length, answerEnd)
        end(plan: plan.id, isAll ? .complete(.delimited) : .stopped)
    }
}
