import Testing

@testable import TowlineCore

@Suite("The offset at which a segment is cut")
struct SplitPolicyTests {
    private func runner(_ id: UInt64, _ lower: Int64, _ upper: Int64, _ rate: Double?) -> SplitPolicy.Runner {
        SplitPolicy.Runner(id: AttemptID(id), remaining: ByteRange(lower, upper), rate: rate)
    }

    @Test("the attempt that would end last is cut, so that both end together")
    func slowest() throws {
        let policy = SplitPolicy(roundTrip: 0.1)
        let cut = try #require(
            policy.cut([runner(1, 0, 10 << 20, 10e6), runner(2, 100 << 20, 110 << 20, 1e6)]))
        #expect(cut.victim == AttemptID(2))
        #expect(cut.segment.upperBound == 110 << 20)
        let left = Double(cut.segment.lowerBound - 100 << 20) / 1e6
        let right = policy.delay(until: 5.5e6) + Double(cut.segment.count) / 5.5e6
        #expect(abs(left - right) < 0.5)
    }

    @Test("a new connection over a long round trip is slow at first, and gets a smaller segment or none")
    func slowStart() throws {
        #expect(SplitPolicy(roundTrip: 0.001).delay(until: 1e6) == 0.002)
        let far = SplitPolicy(roundTrip: 0.2)
        #expect(far.delay(until: 7.8e6) > 1.3 && far.delay(until: 7.8e6) < 1.8)
        let runners = [runner(1, 0, 12 << 20, 7.8e6), runner(2, 100 << 20, 101 << 20, 7.8e6)]
        #expect(far.cut(runners) == nil, "it would receive no byte before the other is done")
        let near = try #require(SplitPolicy(roundTrip: 0.001).cut(runners))
        #expect(near.segment.count > 5 << 20)
    }

    @Test("if the user did not ask for many connections, a segment lasts a quarter of a second")
    func thrift() {
        #expect(SplitPolicy.thriftySegment(at: nil) == 1 << 20)
        #expect(SplitPolicy.thriftySegment(at: 1e3) == 256 << 10)
        #expect(SplitPolicy.thriftySegment(at: 2e6) == 500_000)
        #expect(SplitPolicy.thriftySegment(at: 1e9) == 1 << 20)
    }

    @Test("a remainder shorter than a round trip stays whole")
    func small() {
        let policy = SplitPolicy(roundTrip: 1)
        #expect(policy.cut([runner(1, 0, 2 << 20, 2e6)]) == nil)
        #expect(SplitPolicy(roundTrip: 0.01).cut([runner(1, 0, 300 << 10, 1e3)]) == nil)
        #expect(policy.cut([]) == nil)
    }

    @Test("a race is worth it only for a very slow remainder, and within the budget")
    func race() {
        let policy = SplitPolicy(roundTrip: 0.05)
        let slow = runner(1, 0, 100 << 10, 1e3)
        #expect(policy.race([slow], budget: 1 << 20, typicalRate: 1e6)?.id == AttemptID(1))
        #expect(policy.race([slow], budget: 50 << 10, typicalRate: 1e6) == nil)
        #expect(policy.race([slow], budget: 1 << 20, typicalRate: 1e3) == nil)
        #expect(policy.race([runner(1, 0, 100 << 10, nil)], budget: 1 << 20, typicalRate: nil) == nil)
    }

    @Test("a fast attempt that falls silent before its last bytes is raced: soon for few bytes, later for more")
    func silence() {
        let policy = SplitPolicy(roundTrip: 0.001)
        func isRaced(_ count: Int64, silentFor seconds: Double) -> Bool {
            let runner = SplitPolicy.Runner(
                id: AttemptID(1), remaining: ByteRange(0, count), rate: 20e6, silence: seconds)
            return policy.race([runner], budget: 1 << 20, typicalRate: 20e6) != nil
        }
        #expect(!isRaced(400, silentFor: 0))
        #expect(!isRaced(400, silentFor: 0.02))
        #expect(isRaced(400, silentFor: 0.04))
        // The bytes of a fiftieth of a second.
        #expect(isRaced(390_000, silentFor: 0.045))
        #expect(!isRaced(600_000, silentFor: 0.065))
        #expect(isRaced(600_000, silentFor: 0.15))
        // Over a long round trip, silence is only latency.
        let far = SplitPolicy(roundTrip: 0.2)
        let runner = SplitPolicy.Runner(id: AttemptID(1), remaining: ByteRange(0, 400), rate: 1e6, silence: 0.5)
        #expect(far.race([runner], budget: 1 << 20, typicalRate: 1e6) == nil)
    }

    @Test("a download is checked more often if several connections are about to finish and few downloads run")
    func looks() {
        #expect(TickPolicy.interval(running: 1) == .milliseconds(100))
        #expect(TickPolicy.interval(running: 3, endsSoon: true) == .milliseconds(25))
        #expect(TickPolicy.interval(running: 500, endsSoon: true) == .milliseconds(500))
        #expect(TickPolicy.interval(running: 3, isHashedFast: true) == .milliseconds(10))
        #expect(TickPolicy.interval(running: 500, isHashedFast: true) == .milliseconds(500))
    }
}

@Suite("The number of connections that pays off")
struct ConnectionBudgetTests {
    /// A network whose throughput grows with the connections up to `limit` of them.
    private struct Network {
        var budget: ConnectionBudget
        var limit: Int
        /// The interval between the bursts of each connection. The first burst comes at once.
        var burst = Duration.milliseconds(20)
        /// The rate limit that the user set, in bytes per second.
        var allowed = Double.infinity
        var now = Duration.zero
        var surplus = 0
        var most = 0
        private var next: [Duration] = []

        init(budget: ConnectionBudget, limit: Int, burst: Duration = .milliseconds(20)) {
            self.budget = budget
            self.limit = limit
            self.burst = burst
        }

        /// Feeds the budget for `duration`, every 20 ms.
        mutating func run(_ duration: Duration, roundTrip: Duration = .zero) {
            let end = now + duration
            while now < end {
                now += .milliseconds(20)
                while next.count < budget.target { next.append(now) }
                next.removeLast(next.count - budget.target)
                var bytes = 0.0
                for index in next.indices where next[index] <= now {
                    // Each connection carries 20 MB/s; all of them together carry no more than `limit` connections do.
                    bytes += 20e6 * burst.seconds * min(1, Double(limit) / Double(budget.target))
                    next[index] += burst
                }
                let taken = min(bytes, allowed * 0.02)
                let sample = ConnectionBudget.Sample(
                    bytes: Int64(taken), active: budget.target, remaining: 1 << 40, roundTrip: roundTrip,
                    isLimited: allowed < .infinity, isHeldBack: taken < bytes)
                if budget.measure(sample, now: now) { surplus += 1 }
                most = max(most, budget.target)
            }
        }
    }

    private func network(_ limit: Int, requested: Int? = nil, usual: Int? = nil) -> Network {
        Network(budget: ConnectionBudget(requested: requested, hostCeiling: nil, usual: usual), limit: limit)
    }

    @Test(
        "bursts prove little: the next step is taken, and checked later",
        arguments: [(1, 1), (2, 2), (4, 4), (8, 8), (99, 16)])
    func bursts(_ limit: Int, _ expected: Int) {
        var network = Network(
            budget: ConnectionBudget(requested: nil, hostCeiling: nil), limit: limit, burst: .milliseconds(240))
        network.run(.milliseconds(600))
        if limit == 99 { #expect(network.budget.target == 16) }
        network.run(.seconds(40))
        #expect(network.budget.target == expected)
        #expect(network.budget.finding == expected)
    }

    @Test(
        "doubles while it pays, and takes the last step back, within a second",
        arguments: [(1, 1), (2, 2), (4, 4), (8, 8), (99, 16)])
    func doubles(_ limit: Int, _ expected: Int) {
        var network = network(limit)
        network.run(.seconds(1))
        #expect(network.budget.target == expected)
        #expect(network.budget.finding == expected)
        #expect(network.surplus == (expected < 16 ? 1 : 0), "a reduction is reported once")
    }

    @Test("over a long round trip a step is two doublings; the first step does not wait and may reach the ceiling")
    func longRoundTrips() {
        var network = network(99)
        network.run(.milliseconds(60), roundTrip: .milliseconds(80))
        #expect(network.budget.target == 4)
        network.run(.milliseconds(100), roundTrip: .milliseconds(80))
        #expect(network.budget.target == 16)
        var far = self.network(99)
        far.run(.milliseconds(60), roundTrip: .milliseconds(200))
        #expect(far.budget.target == 16)
        for (limit, roundTrip) in [(4, 80), (4, 200), (1, 200)] {
            var slow = self.network(limit)
            slow.run(.seconds(30), roundTrip: .milliseconds(roundTrip))
            #expect(slow.budget.target == limit, "surplus connections are removed")
        }
    }

    @Test("a step that did not pay off is tried again later, with longer and longer pauses")
    func searchesAgain() {
        var network = network(2)
        network.run(.seconds(10))
        #expect(network.budget.target == 2 && network.surplus == 1)
        network.limit = 8
        network.run(.seconds(10))
        #expect(network.budget.target == 8 && network.budget.finding == 8)
        network.run(.seconds(100))
        #expect(network.surplus <= 6 && network.budget.target == 8)
    }

    @Test("the next download starts with the number that paid off at the host before")
    func usual() {
        #expect(network(99, usual: 8).budget.target == 8)
        #expect(network(99, usual: 64).budget.target == 16)
        var more = network(99, usual: 4)
        more.run(.seconds(1))
        #expect(more.budget.target == 16)
        #expect(ConnectionBudget(requested: 2, hostCeiling: nil, usual: 8).target == 2)
        #expect(ConnectionBudget(requested: nil, hostCeiling: 3, usual: 8).target == 3)
    }

    @Test("a trickle is measured long enough for a result")
    func trickle() {
        var budget = ConnectionBudget(requested: nil, hostCeiling: nil)
        var now = Duration.zero
        for _ in 0..<9 {
            now += .milliseconds(100)
            _ = budget.measure(ConnectionBudget.Sample(bytes: 1000, active: 1), now: now)
        }
        #expect(budget.target == 1)
        for _ in 0..<3 {
            now += .milliseconds(100)
            _ = budget.measure(ConnectionBudget.Sample(bytes: 1000, active: 1), now: now)
        }
        #expect(budget.target == 2)
    }

    @Test("the connections of a step are expected soon, for a moment")
    func looksSoon() throws {
        var budget = ConnectionBudget(requested: nil, hostCeiling: nil)
        var now = Duration.zero
        while budget.target == 1 {
            now += .milliseconds(15)
            _ = budget.measure(ConnectionBudget.Sample(bytes: 1 << 20, active: 1), now: now)
        }
        let step = now
        var looks = 0
        while let next = budget.wakeAt {
            #expect(next > now && next - now <= .milliseconds(20))
            now = next
            looks += 1
            _ = budget.measure(ConnectionBudget.Sample(bytes: 1 << 20, active: 1), now: now)
        }
        #expect(looks > 10 && now - step <= .milliseconds(260), "it does not wait like that for an unopened one")
        _ = budget.measure(ConnectionBudget.Sample(bytes: 1 << 20, active: 2), now: now)
        #expect(try #require(budget.wakeAt) - now <= .milliseconds(20))
    }

    @Test("a quarter of the new connections may never open")
    func missing() {
        var budget = ConnectionBudget(requested: nil, hostCeiling: nil, usual: 8)
        func feed(_ steps: Range<Int>, active: Int) {
            let sample = ConnectionBudget.Sample(bytes: 4 << 20, active: active)
            for step in steps { _ = budget.measure(sample, now: .milliseconds(step * 50)) }
        }
        feed(0..<10, active: 5)
        #expect(budget.target == 8)
        feed(10..<20, active: 6)
        #expect(budget.target == 16)
    }

    @Test(
        "a rate limit needs only as many connections as reach the limit",
        arguments: [(10e6, 1), (30e6, 2), (70e6, 4), (1000e6, 16)])
    func limited(_ allowed: Double, _ expected: Int) {
        for roundTrip in [Duration.milliseconds(1), .milliseconds(100)] {
            var network = network(99)
            network.allowed = allowed
            network.run(.seconds(10), roundTrip: roundTrip)
            #expect(network.budget.target >= expected && network.budget.target < 2 * expected, "\(roundTrip)")
        }
    }

    @Test("a rate limit is detected although a busy server pauses")
    func limitedAndBusy() {
        for pause in [100, 300, 700] {
            for period in [2, 5] {
                var network = network(99)
                network.allowed = 10e6
                for _ in 0..<10 {
                    network.run(.milliseconds(40))
                    network.limit = 0
                    network.run(.milliseconds(pause))
                    network.limit = 99
                    network.run(.milliseconds(pause * period))
                }
                #expect(network.most == 1, "\(pause) ms")
            }
        }
    }

    @Test("setting a limit while many run removes connections, and lifting the limit adds them again")
    func limitWhileRunning() {
        var network = network(8)
        network.run(.seconds(5))
        #expect(network.budget.target == 8)
        let surplus = network.surplus
        network.allowed = 5e6
        network.run(.seconds(5))
        #expect(network.budget.target == 1 && network.surplus == surplus + 3)
        #expect(network.budget.finding == 8, "a finding made without a limit stays valid")
        network.allowed = .infinity
        network.run(.seconds(20))
        #expect(network.budget.target == 8)
    }

    @Test("a number that the user asked for is kept under a limit")
    func limitedAndFixed() {
        var network = network(8, requested: 4)
        network.allowed = 5e6
        network.run(.seconds(10))
        #expect(network.budget.target == 4)
    }

    @Test("the number that the user asked for is used at once and kept")
    func fixed() {
        #expect(network(1, requested: 7).budget.target == 7)
        var seven = network(1, requested: 7)
        seven.run(.seconds(60))
        #expect(seven.budget.target == 7 && seven.budget.finding == nil)
        #expect(network(1, requested: 500).budget.target == 128)
        #expect(ConnectionBudget(requested: 7, hostCeiling: 3).target == 3)
    }

    @Test("connections that the host still counts after they were closed do not lower the ceiling one by one")
    func closedLate() {
        var budget = ConnectionBudget(requested: 8, hostCeiling: nil)
        for count in 1...3 { budget.serves(count) }
        #expect(budget.refused(beside: 3, now: .zero) == 3 && budget.ceiling == 3)
        budget.closed(now: .seconds(1))
        #expect(budget.refused(beside: 2, now: .seconds(1)) == 3 && budget.ceiling == 3)
        budget.closed(now: .seconds(2))
        #expect(budget.refused(beside: 1, now: .seconds(2)) == 3 && budget.ceiling == 3)
        // As many connections as before: a later refusal has the same explanation.
        budget.serves(3)
        for second in 3..<6 { #expect(budget.refused(beside: 2, now: .seconds(second)) == 3) }
    }

    @Test("a host that allows fewer connections than before lowers it", arguments: [0, 1])
    func allowsFewer(_ closings: Int) {
        var budget = ConnectionBudget(requested: 8, hostCeiling: nil)
        budget.serves(3)
        for _ in 0..<closings { budget.closed(now: .zero) }
        // Fewer connections were closed than would explain it, or it refuses for longer than it may count closed ones.
        #expect(budget.refused(beside: 1, now: .seconds(1)) == 1 && budget.ceiling == 1)
        budget = ConnectionBudget(requested: 8, hostCeiling: nil)
        budget.serves(3)
        budget.closed(now: .zero)
        #expect(budget.refused(beside: 2, now: .seconds(11)) == 2)
        budget = ConnectionBudget(requested: 8, hostCeiling: nil)
        budget.serves(3)
        var ceilings: [Int] = []
        for second in 0..<4 {
            budget.closed(now: .seconds(second))
            ceilings.append(budget.refused(beside: 2, now: .seconds(second)))
        }
        #expect(ceilings == [3, 3, 3, 2], "\(ceilings)")
    }

    @Test("a refusal lowers the ceiling; later one more is tried, never more than were wanted")
    func lowers() {
        var budget = ConnectionBudget(requested: 4, hostCeiling: nil)
        budget.lower(to: 2, now: .zero)
        #expect(budget.target == 2)
        let sample = ConnectionBudget.Sample(bytes: 1, active: 2)
        _ = budget.measure(sample, now: .seconds(19))
        #expect(budget.target == 2)
        for second in 20..<200 { _ = budget.measure(sample, now: .seconds(second)) }
        #expect(budget.target == 4)
    }
}
