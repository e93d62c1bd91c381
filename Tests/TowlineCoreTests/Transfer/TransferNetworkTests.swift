import Testing
import TowlineCore

@Suite("A transfer whose network changes")
struct TransferNetworkTests {
    @Test("asks again at once, and restarts the back-off")
    func endsRetryWait() throws {
        var script = try TransferScript { $0.options.maximumTries = 5 }
        script.feed(.begin(nil))
        for _ in 0..<4 {
            script.end(cut(.connectFailed))
            script.now += .seconds(100)
            script.feed(.tick)
        }
        script.end(cut(.connectFailed))
        // Without a network change this was the last allowed failure.
        #expect(script.failure != nil)

        script = try TransferScript { $0.options.maximumTries = 5 }
        script.feed(.begin(nil))
        for round in 1...12 {
            script.end(cut(.connectFailed))
            #expect(TickPolicy.wakeAt(script.machine) == script.now + .seconds(1))
            let actions = script.feed(.networkChanged)
            #expect(script.started(in: actions).count == 1)
            #expect(script.plans.count == round + 1)
        }
        #expect(script.failure == nil)
    }

    @Test("resumes where it stopped")
    func keepsBytes() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        script.end(cut(.connectFailed))
        let actions = script.feed(.networkChanged)
        #expect(script.started(in: actions).first?.lease == ByteRange(400_000, 1_000_000))
        #expect(script.notices(.restarted).isEmpty)
    }

    @Test("keeps the wait that the server asked for")
    func keepsServerWait() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(503, [("Retry-After", "7")])
        script.endCancelled()
        script.now = .seconds(1)
        #expect(script.feed(.networkChanged).isEmpty)
        script.now = .seconds(6)
        script.feed(.tick)
        #expect(script.plans.count == 1)
        script.now = .seconds(7)
        script.feed(.tick)
        #expect(script.plans.count == 2)
    }

    @Test("does not change what runs, what is being published, or what has ended")
    func elsewhere() throws {
        var script = try TransferScript()
        script.begin(length: 1000, position: 400)
        #expect(script.feed(.networkChanged).isEmpty)
        script.write(to: 1000)
        script.end(.complete(.delimited))
        #expect(script.feed(.networkChanged).isEmpty)
        script.feed(.published)
        #expect(script.feed(.networkChanged).isEmpty)
        #expect(script.ending == .finished)
    }
}
