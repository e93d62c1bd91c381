import Testing

@testable import TowlineEngine

@Suite("A rate limit with many users")
struct RateLimiterTests {
    private let clock = ManualClock()

    /// Returns the number of bytes that pass in a second, requested in pieces every millisecond.
    private func second(of limiter: RateLimiter, piece: Int = 100) -> Int {
        var passed = 0
        for _ in 0..<1000 {
            clock.advance(.milliseconds(1))
            while passed < 10_000_000, limiter.take(piece) == nil { passed += piece }
        }
        return passed
    }

    private func isNear(_ count: Int, _ expected: Int) -> Bool { abs(count - expected) <= expected / 50 + 200 }

    @Test("no limit never waits")
    func noLimit() {
        let limiter = RateLimiter(rate: 0, clock: clock.read)
        for _ in 0..<1000 { #expect(limiter.take(.max / 4) == nil) }
        limiter.giveBack(1)
    }

    @Test("the rate is kept, and a change of it counts from then on")
    func changes() {
        let limiter = RateLimiter(rate: 100_000, clock: clock.read)
        #expect(isNear(second(of: limiter), 110_000), "a tenth of a second is saved up")
        #expect(isNear(second(of: limiter), 100_000))
        limiter.setRate(20_000)
        #expect(isNear(second(of: limiter), 20_000))
        limiter.setRate(1_000_000)
        #expect(isNear(second(of: limiter), 1_000_000))
        limiter.setRate(0)
        #expect(second(of: limiter) == 10_000_000)
        limiter.setRate(50_000)
        #expect(isNear(second(of: limiter), 50_000))
    }

    @Test("lowering a limit discards the savings of the higher one")
    func lowered() {
        let limiter = RateLimiter(rate: 10_000_000, clock: clock.read)
        limiter.setRate(100_000)
        #expect(limiter.take(20_000) == nil)
        #expect(limiter.take(1) != nil)
    }

    @Test("lifting a limit frees waiting transfers")
    func lifted() {
        let limiter = RateLimiter(rate: 1000, clock: clock.read)
        _ = limiter.take(1_000_000)
        #expect(limiter.take(1) != nil)
        limiter.setRate(0)
        #expect(limiter.take(1_000_000) == nil)
    }

    @Test("several threads together pass as many bytes as one would")
    func threads() async {
        let limiter = RateLimiter(rate: 1_000_000, clock: clock.read)
        clock.advance(.seconds(10))
        let passed = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { (0..<1000).count { _ in limiter.take(100) == nil } } }
            return await group.reduce(0, +)
        }
        // The clock stands still: only the burst of a tenth of a second passes.
        #expect(passed == 1000)
    }
}
