import Testing
import TowlineCore

@Suite("Where to cut")
struct SplitPolicyTests {
    private func runner(_ id: UInt64, _ lower: Int64, _ upper: Int64, _ rate: Double?) -> SplitPolicy.Runner {
        SplitPolicy.Runner(id: AttemptID(id), remaining: ByteRange(lower, upper), rate: rate)
    }

    @Test("the one that would end last is cut, so that both end together")
    func slowest() throws {
        let policy = SplitPolicy(roundTrip: 0.1)
        let cut = try #require(
            policy.cut([runner(1, 0, 10 << 20, 10e6), runner(2, 100 << 20, 110 << 20, 1e6)]))
        #expect(cut.victim == AttemptID(2))
        #expect(cut.segment.upperBound == 110 << 20)
        let left = Double(cut.segment.lowerBound - 100 << 20) / 1e6
        let right = 0.1 + Double(cut.segment.count) / 5.5e6
        #expect(abs(left - right) < 0.5)
    }

    @Test("what is not worth a round trip stays whole")
    func small() {
        let policy = SplitPolicy(roundTrip: 1)
        #expect(policy.cut([runner(1, 0, 2 << 20, 2e6)]) == nil)
        #expect(SplitPolicy(roundTrip: 0.01).cut([runner(1, 0, 300 << 10, 1e3)]) == nil)
        #expect(policy.cut([]) == nil)
    }

    @Test("a race is worth it only for a remainder that crawls, and within the budget")
    func race() {
        let policy = SplitPolicy(roundTrip: 0.05)
        let slow = runner(1, 0, 100 << 10, 1e3)
        #expect(policy.race([slow], budget: 1 << 20, typicalRate: 1e6)?.id == AttemptID(1))
        #expect(policy.race([slow], budget: 50 << 10, typicalRate: 1e6) == nil)
        #expect(policy.race([slow], budget: 1 << 20, typicalRate: 1e3) == nil)
        #expect(policy.race([runner(1, 0, 100 << 10, nil)], budget: 1 << 20, typicalRate: nil) == nil)
    }
}

@Suite("How many connections pay off")
struct ConnectionBudgetTests {
    /// Feeds a throughput that grows with the connections up to `limit` of them.
    private func settle(limit: Int, requested: Int? = nil) -> Int {
        var budget = ConnectionBudget(requested: requested, hostCeiling: nil)
        var now = Duration.zero
        for _ in 0..<200 {
            now += .milliseconds(100)
            budget.measure(Int64(min(budget.target, limit)) * 100_000, active: budget.target, now: now)
        }
        return budget.target
    }

    @Test("doubles while it pays, and takes the last step back", arguments: [(1, 1), (2, 2), (4, 4), (8, 8), (99, 16)])
    func doubles(_ limit: Int, _ expected: Int) {
        #expect(settle(limit: limit) == expected)
    }

    @Test("what the user asked for is used at once and kept")
    func fixed() {
        #expect(ConnectionBudget(requested: 7, hostCeiling: nil).target == 7)
        #expect(settle(limit: 1, requested: 7) == 7)
        #expect(ConnectionBudget(requested: 500, hostCeiling: nil).target == 128)
        #expect(ConnectionBudget(requested: 7, hostCeiling: 3).target == 3)
    }

    @Test("a refusal lowers it; after a while one more is tried, never more than were wanted")
    func lowers() {
        var budget = ConnectionBudget(requested: 4, hostCeiling: nil)
        budget.lower(to: 2, now: .zero)
        #expect(budget.target == 2)
        budget.measure(1, active: 2, now: .seconds(19))
        #expect(budget.target == 2)
        for second in 20..<200 { budget.measure(1, active: 2, now: .seconds(second)) }
        #expect(budget.target == 4)
    }
}
