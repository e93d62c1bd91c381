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
            let actions = script.feed(.networkChanged(.available))
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
        let actions = script.feed(.networkChanged(.available))
        #expect(script.started(in: actions).first?.lease == ByteRange(400_000, 1_000_000))
        #expect(script.notices(.restarted).isEmpty)
    }

    @Test("replaces the connections that received no bytes since the network was lost")
    func replacesSilent() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        let first = script.last
        #expect(script.feed(.networkChanged(.unavailable)).isEmpty)
        script.now = .seconds(5)
        let actions = script.feed(.networkChanged(.available))
        #expect(actions.contains(.cancel(first.id)))
        #expect(script.started(in: actions).map(\.lease) == [ByteRange(400_000, 1_000_000)])
        // The loss is over: a further change does not affect the new connection.
        script.now = .seconds(10)
        #expect(script.feed(.networkChanged(.available)).isEmpty)
    }

    @Test("keeps a silent connection whose response no other could continue")
    func keepsWhatCannotResume() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, [("Content-Length", "1000000")])
        script.feed(.prepared)
        script.write(to: 400_000)
        script.feed(.networkChanged(.unavailable))
        script.now = .seconds(5)
        #expect(script.feed(.networkChanged(.available)).isEmpty)
    }

    @Test("keeps a connection whose bytes arrive although the network is lost")
    func keepsWorking() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.feed(.networkChanged(.unavailable))
        script.now = .seconds(5)
        script.write(to: 500_000)
        script.feed(.tick)
        script.now += .milliseconds(500)
        #expect(script.feed(.networkChanged(.available)).isEmpty)
    }

    @Test("does not end a retry wait when the network is lost")
    func keepsRetryWait() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.end(cut(.connectFailed))
        #expect(script.feed(.networkChanged(.unavailable)).isEmpty)
        #expect(script.started(in: script.feed(.networkChanged(.available))).count == 1)
    }

    @Test("keeps the wait that the server asked for")
    func keepsServerWait() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(503, [("Retry-After", "7")])
        script.endCancelled()
        script.now = .seconds(1)
        #expect(script.feed(.networkChanged(.available)).isEmpty)
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
        #expect(script.feed(.networkChanged(.available)).isEmpty)
        script.write(to: 1000)
        script.end(.complete(.delimited))
        #expect(script.feed(.networkChanged(.available)).isEmpty)
        script.feed(.published)
        #expect(script.feed(.networkChanged(.available)).isEmpty)
        #expect(script.ending == .finished)
    }
}
