import Testing

@testable import TowlineCore

@Suite("Connections that are too slow to keep")
struct ReplacementPolicyTests {
    private let policy = ReplacementPolicy(stallTimeout: .seconds(30), futile: 0)

    private func runner(_ rate: Double, best: Double? = nil, remaining: Int64? = nil) -> ReplacementPolicy.Runner {
        ReplacementPolicy.Runner(id: AttemptID(1), rate: rate, best: best ?? rate, remaining: remaining)
    }

    @Test("beside several others the median is the measure: one very fast connection makes no others slow")
    func median() {
        #expect(policy.patience(for: runner(9e3), peers: [1e5, 1e5], typicalRate: nil) == .seconds(4))
        #expect(policy.patience(for: runner(2e4), peers: [1e5, 1e5], typicalRate: nil) == nil)
        #expect(policy.patience(for: runner(1e5), peers: [1e5, 1e5, 1e8], typicalRate: nil) == nil)
        #expect(policy.patience(for: runner(1e4), peers: [1e4, 1e4, 1e4, 1e8, 1e8], typicalRate: nil) == nil)
    }

    @Test("beside one other connection that one is the measure, not the connection's own earlier rate")
    func pair() {
        #expect(policy.patience(for: runner(1e4), peers: [1e6], typicalRate: nil) == .seconds(4))
        #expect(policy.patience(for: runner(1e6, best: 1e8), peers: [1e6], typicalRate: 1e8) == nil)
    }

    @Test("a single connection is compared with earlier connections, and with its own best rate")
    func alone() {
        #expect(policy.patience(for: runner(1e4), peers: [], typicalRate: 1e6) == .seconds(4))
        #expect(policy.patience(for: runner(1e4, best: 1e6), peers: [], typicalRate: nil) == .seconds(4))
        #expect(policy.patience(for: runner(1e4), peers: [], typicalRate: nil) == nil)
    }

    @Test("without a comparison, a trickle counts as silence")
    func floor() {
        #expect(policy.patience(for: runner(1000), peers: [], typicalRate: nil) == .seconds(30))
        #expect(policy.patience(for: runner(1100), peers: [], typicalRate: nil) == nil)
    }

    @Test("each useless replacement doubles the patience")
    func futile() {
        let patient = ReplacementPolicy(stallTimeout: .seconds(30), futile: 3)
        #expect(patient.patience(for: runner(1e3), peers: [1e6], typicalRate: nil) == .seconds(32))
        #expect(patient.patience(for: runner(1e3), peers: [], typicalRate: nil) == .seconds(240))
        #expect(policy.isBetter(4e3, than: 1e3))
        #expect(!policy.isBetter(1500, than: 1e3))
        #expect(!policy.isBetter(100, than: 1))
    }

    @Test("a connection that is about to end is kept")
    func nearEnd() {
        #expect(policy.patience(for: runner(1e4, remaining: 19_000), peers: [1e6], typicalRate: nil) == nil)
        #expect(policy.patience(for: runner(1e4, remaining: 21_000), peers: [1e6], typicalRate: nil) == .seconds(4))
    }
}
