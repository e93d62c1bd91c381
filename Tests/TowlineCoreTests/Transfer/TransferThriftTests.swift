import Testing
import TowlineCore

/// Further connections are opened only if their bytes are needed: bytes that a server has sent of a cut response are
/// wasted.
@Suite struct TransferThriftTests {
    private static let length = TransferScript.length

    /// Returns a transfer with the first response of a server that answers after `trip`.
    private func begun(
        _ trip: Duration, connections: Int? = 4, length: Int64 = length, isLimited: Bool = false
    ) throws -> TransferScript {
        var script = try TransferScript { $0.options.connections = connections }
        script.isLimited = isLimited
        script.feed(.begin(nil))
        script.now += trip
        script.give(script.last, length: length)
        script.feed(.prepared)
        return script
    }

    /// Lets the first connection receive bytes at a rate until the next tick.
    private func advance(_ script: inout TransferScript, by time: Duration, rate: Int64, isHeldBack: Bool = false) {
        let plan = script.plans[0]
        script.now += time
        let received = (script.progress[plan.id]?.received ?? 0) + rate * Int64(time / .milliseconds(1)) / 1000
        script.progress[plan.id] = AttemptProgress(position: received, received: received, isHeldBack: isHeldBack)
        script.feed(.tick)
    }

    @Test("the first response of a near server is watched, that of a distant one is shared at once")
    func near() throws {
        #expect(try begun(.milliseconds(40)).plans.count == 4)
        var script = try begun(.milliseconds(2))
        #expect(script.plans.count == 1 && TickPolicy.wakeAt(script.machine) == script.now + .milliseconds(20))
        advance(&script, by: .milliseconds(10), rate: 20_000_000)
        #expect(script.plans.count == 1)
        advance(&script, by: .milliseconds(10), rate: 20_000_000)
        #expect(script.plans.count == 4, "3 s are left")
    }

    @Test("a response that a near server sends within a moment is not shared", arguments: [1_000_000_000, 100_000_000])
    func fast(_ rate: Int64) throws {
        var script = try begun(.milliseconds(2))
        advance(&script, by: .milliseconds(25), rate: rate)
        #expect(script.plans.count == (rate > 500_000_000 ? 1 : 4))
    }

    @Test("a connection that has just begun is not cut for one that is done before its rate is known")
    func firstEnd() throws {
        var script = try begun(.milliseconds(40))
        let done = script.plans[1]
        for plan in script.plans.dropFirst() { script.give(plan) }
        script.now += .milliseconds(30)
        script.write(done, to: done.lease.upperBound)
        script.end(done, .complete(.delimited))
        #expect(script.plans.count == 4)
        for _ in 1...3 {
            script.now += .milliseconds(100)
            for plan in script.plans where plan.id != done.id {
                let received = (script.progress[plan.id]?.received ?? 0) + 100_000
                script.write(plan, to: plan.lease.lowerBound + received)
            }
            script.feed(.tick)
        }
        #expect(script.plans.count == 5)
    }

    @Test(
        "a limited download gets further connections only if the limit lets all bytes through",
        arguments: [true, false])
    func limited(_ isHeldBack: Bool) throws {
        var script = try begun(.milliseconds(40), isLimited: true)
        #expect(script.plans.count == 1)
        for _ in 1...3 { advance(&script, by: .milliseconds(100), rate: 1_000_000, isHeldBack: isHeldBack) }
        #expect(script.plans.count == (isHeldBack ? 1 : 4))
    }
}
