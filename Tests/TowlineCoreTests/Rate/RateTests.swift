import Testing
import TowlineCore

@Suite("Rates and times")
struct RateTests {
    @Test("a token bucket lets through its rate, whatever the size of the pieces", arguments: [1_000, 16_384, 300_000])
    func bucket(_ piece: Int) {
        let rate: Int64 = 1_000_000
        var bucket = TokenBucket(rate: rate, now: .zero)
        var now = Duration.zero
        var passed = 0
        while now < .seconds(20) {
            if let wait = bucket.take(piece, now: now) { now += wait } else { passed += piece }
        }
        let expected = 20.0 * Double(rate)
        #expect(abs(Double(passed) - expected) < expected * 0.03 + Double(2 * piece))
    }

    @Test("no limit never waits; returned bytes can be taken again")
    func noLimit() {
        var free = TokenBucket(rate: 0, now: .zero)
        #expect(free.take(.max / 2, now: .zero) == nil)
        var bucket = TokenBucket(rate: 100_000, now: .zero)
        #expect(bucket.take(50_000, now: .zero) == nil)
        #expect(bucket.take(1, now: .zero) != nil)
        bucket.giveBack(50_000)
        #expect(bucket.take(1, now: .zero) == nil)
    }

    @Test(
        "the throughput settles at the true rate and does not depend on how often it is asked",
        arguments: [10, 100, 700])
    func throughput(_ milliseconds: Int) throws {
        var estimator = ThroughputEstimator()
        for step in 1...(30_000 / milliseconds) {
            estimator.add(Int64(milliseconds) * 500, now: .milliseconds(step * milliseconds))
        }
        let rate = try #require(estimator.rate)
        #expect(abs(rate - 500_000) < 5_000)
    }

    @Test("the remaining time counts down with the clock and does not jump for one sample")
    func remaining() throws {
        var estimator = RemainingTimeEstimator()
        var missing: Int64 = 100_000_000
        let first = estimator.estimate(missing: missing, rate: 1e6, now: .zero)
        var last = try #require(first)
        for second in 1...50 {
            missing -= 1_000_000
            let wobble = second % 2 == 0 ? 1.05e6 : 0.95e6
            let estimate = estimator.estimate(missing: missing, rate: wobble, now: .seconds(second))
            let next = try #require(estimate)
            #expect(next < last + .seconds(0.1))
            #expect(last - next < .seconds(4))
            last = next
        }
        #expect(estimator.estimate(missing: 1, rate: nil, now: .seconds(60)) == nil)
    }

    @Test("waits double up to the cap and are spread")
    func backoff() {
        let backoff = Backoff(base: .seconds(1))
        #expect(backoff.delay(failures: 1, jitter: 0.5) == .seconds(1))
        #expect(backoff.delay(failures: 4, jitter: 0.5) == .seconds(8))
        #expect(backoff.delay(failures: 400, jitter: 0.5) == .seconds(60))
        #expect(backoff.delay(failures: 2, jitter: 0) == .seconds(1.5))
        #expect(backoff.delay(failures: 2, jitter: 1) == .seconds(2.5))
    }

    @Test("clients that fail one after the other wait for different times")
    func jitter() {
        let values = (0..<1000).map { Backoff.jitter(at: .seconds(100) + .microseconds($0)) }
        #expect(values.allSatisfy { (0..<1).contains($0) })
        for tenth in 0..<10 {
            #expect(values.count { Int($0 * 10) == tenth } > 50, "\(tenth)")
        }
    }

    @Test("a checkpoint is due every second or 16 MiB, and less often if syncs are slow")
    func checkpoints() {
        var policy = CheckpointPolicy(now: .zero)
        #expect(!policy.isDue(now: .seconds(5), bytes: 0))
        #expect(!policy.isDue(now: .milliseconds(900), bytes: 1000))
        #expect(policy.isDue(now: .seconds(1), bytes: 1000))
        #expect(policy.isDue(now: .milliseconds(10), bytes: 16 << 20))
        policy.completed(start: .seconds(1), now: .milliseconds(1100), bytes: 1000)
        #expect(!policy.isDue(now: .seconds(5), bytes: 1 << 30))
        #expect(policy.isDue(now: .milliseconds(6100), bytes: 1 << 30))
        policy.completed(start: .seconds(10), now: .seconds(20), bytes: 1 << 30)
        #expect(!policy.isDue(now: .seconds(49), bytes: 2 << 30))
        #expect(policy.isDue(now: .seconds(50), bytes: 2 << 30))
    }

    @Test("writeback starts every 8 MiB, also between checkpoints")
    func writeback() {
        var policy = CheckpointPolicy(now: .zero)
        let told = stride(from: Int64(0), through: 20 << 20, by: 1 << 20).filter { policy.startsWriteback(bytes: $0) }
        #expect(told == [8 << 20, 16 << 20])
    }

    @Test("many transfers are checked less often, but each once a second")
    func ticks() {
        for (running, milliseconds) in [(0, 100), (1, 100), (100, 100), (250, 250), (1000, 1000), (10_000, 1000)] {
            #expect(TickPolicy.interval(running: running) == .milliseconds(milliseconds))
        }
    }

    @Test("every kind of failure has a row in the retry table, and the limits end loops")
    func retries() {
        for kind in TransportFailure.Kind.allCases {
            switch RetryPolicy.classify(kind) {
            // Without a thread no attempt can wait, but another run may get one.
            case .permanent(let code): #expect(code != .transient || kind == .threadRefused)
            case .transient(let limit): #expect(RetryPolicy().isExhausted(failures: 20, limit: limit))
            }
        }
        // Exit statuses 8, 2 and 1: a further attempt does not help.
        let permanent: [(TransportFailure.Kind, TowlineError.Code)] = [
            (.clientCertificateRefused, .refusedByServer), (.tlsFileUnusable, .unusableOption),
            (.tlsIncompatible, .untrustedServer), (.unsupported, .unusableOption),
        ]
        for (kind, code) in permanent { #expect(RetryPolicy.classify(kind) == .permanent(code)) }
        #expect(!RetryPolicy(maxTries: 0).isExhausted(failures: 1_000_000, limit: nil))
        #expect(RetryPolicy(maxTries: 0).isExhausted(failures: 5, limit: 5))
    }
}
