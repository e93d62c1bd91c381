import Testing

@testable import TowlineCore

@Suite("When the kernel moves a body")
struct SplicePolicyTests {
    private let window = SplicePolicy.window
    private let far: Int64 = 1 << 30

    /// A policy that can be called inside an expectation.
    private final class Asked {
        private var policy: SplicePolicy
        var next: Int64 { policy.next }

        init(_ policy: SplicePolicy) { self.policy = policy }

        func paysOff(received: Int64, rest: Int64, now: Duration) -> Bool {
            policy.paysOff(received: received, rest: rest, now: now)
        }
    }

    private func policy() throws -> Asked {
        Asked(try #require(SplicePolicy(now: .seconds(100), latency: .milliseconds(10))))
    }

    @Test(
        "after a fast window, and not before", arguments: [(1, true), (62, true), (63, false), (5000, false)])
    func fast(_ milliseconds: Int, _ pays: Bool) throws {
        let policy = try self.policy()
        #expect(policy.next == window)
        #expect(!policy.paysOff(received: window - 1, rest: far, now: .seconds(100)))
        #expect(policy.paysOff(received: window, rest: far, now: .seconds(100) + .milliseconds(milliseconds)) == pays)
    }

    @Test("each window is judged alone, and several windows that arrive together by their number")
    func windows() throws {
        let policy = try self.policy()
        #expect(!policy.paysOff(received: window, rest: far, now: .seconds(101)))
        #expect(policy.next == 2 * window)
        #expect(!policy.paysOff(received: 2 * window - 1, rest: far, now: .seconds(101)))
        #expect(policy.paysOff(received: 2 * window, rest: far, now: .seconds(101) + .milliseconds(30)))
        let late = try self.policy()
        #expect(late.paysOff(received: 3 * window + 5, rest: far, now: .seconds(100) + .milliseconds(3 * 62)))
        #expect(late.next == 4 * window)
        #expect(!late.paysOff(received: 6 * window, rest: far, now: .seconds(100) + .milliseconds(7 * 62)))
    }

    @Test("a server that sends 2 MiB at once, ten times a second, is not fast")
    func throttled() throws {
        let policy = try self.policy()
        var now = Duration.seconds(100)
        for received in stride(from: Int64(2 << 20), through: 64 << 20, by: 2 << 20) {
            #expect(!policy.paysOff(received: received, rest: far, now: now))
            now += .milliseconds(100)
        }
    }

    @Test("no splicing over a long round trip, or for a short remainder")
    func neither() throws {
        #expect(SplicePolicy(now: .seconds(100), latency: .milliseconds(11)) == nil)
        let short = try self.policy()
        #expect(!short.paysOff(received: window, rest: SplicePolicy.least - 1, now: .seconds(100)))
        #expect(short.paysOff(received: 2 * window, rest: SplicePolicy.least, now: .seconds(100)))
    }
}
