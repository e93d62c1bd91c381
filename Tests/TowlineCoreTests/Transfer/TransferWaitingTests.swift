import Testing
import TowlineCore

/// Servers that let a download wait: for a response head, or for a time that they name.
@Suite("Waiting for servers") struct TransferWaitingTests {
    // MARK: Heads

    /// A timer that was due without a head must not be set again and again.
    @Test func aServerThatSendsNoHeadCostsOneTickPerSecond() throws {
        var script = try TransferScript { $0.options.connections = nil }
        script.feed(.begin(nil))
        for _ in 0..<30 {
            script.now += .milliseconds(100)
            script.feed(.tick)
        }
        #expect(TickPolicy.wakeAt(script.machine) == nil)
        #expect(TickPolicy.interval(running: 3, for: script.machine) == .seconds(1))
    }

    // MARK: Retry-After

    @Test(arguments: [429, 503], [3601, 7200, 1_000_000_000])
    func aPauseLongerThanTheLimitEndsTheDownloadAtOnce(_ status: Int, _ seconds: Int) throws {
        var script = try TransferScript { $0.options.maximumWait = .seconds(3600) }
        script.feed(.begin(nil))
        script.answer(status, [("Retry-After", "\(seconds)")])
        script.endCancelled()
        let failure = script.failure
        #expect(failure?.code == .transient && script.plans.count == 1)
        #expect(failure?.message.contains(Remedy.longerWait.rawValue) == true)
        #expect(failure?.message.contains(DurationText.inSentence(.seconds(seconds))) == true)
        #expect(script.notices(.retrying).isEmpty)
    }

    @Test(arguments: [nil, .seconds(7200)] as [Duration?]) func aPauseWithinTheLimitIsWaitedFor(_ limit: Duration?)
        throws
    {
        var script = try TransferScript { $0.options.maximumWait = limit }
        script.feed(.begin(nil))
        script.answer(503, [("Retry-After", "7200")])
        script.endCancelled()
        #expect(script.ending == nil)
        #expect(script.machine.wait(now: .zero) == .seconds(7200))
    }

    @Test func aHostThatAskedAnotherDownloadToWaitIsNotWaitedForEither() throws {
        var script = try TransferScript { $0.options.maximumWait = .seconds(60) }
        script.hostNotBefore = .seconds(90)
        script.feed(.begin(nil))
        #expect(script.plans.isEmpty && script.failure?.code == .transient)
    }

    @Test func aMirrorGoesOnForAServerThatAsksForALongPause() throws {
        var script = try TransferScript {
            $0.options.maximumWait = .seconds(60)
            $0.mirrors = [try? HTTPURL(parsing: "https://m.example/file.iso")].compactMap(\.self)
        }
        script.feed(.begin(nil))
        script.answer(503, [("Retry-After", "90")])
        script.endCancelled()
        #expect(script.ending == nil && script.last.url.host == "m.example")
    }

    // MARK: Heads

    @Test func aSlowResponseIsNotAStalledConnection() throws {
        var script = try TransferScript { $0.options.stallTimeout = .seconds(5) }
        script.feed(.begin(nil))
        for second in 1...200 {
            script.now = .seconds(second)
            script.feed(.tick)
        }
        #expect(script.plans.count == 1 && script.ending == nil)
        let notices = script.notices(.waiting).map(\.message)
        #expect(notices.count == 1 && notices[0].contains(Remedy.headTimeout.rawValue))
    }

    @Test func theStallTimeoutCountsFromTheHeadOn() throws {
        var script = try TransferScript { $0.options.stallTimeout = .seconds(5) }
        script.feed(.begin(nil))
        script.now = .seconds(100)
        script.feed(.tick)
        script.give(script.last)
        script.feed(.prepared)
        let first = script.last
        script.now = .seconds(104)
        script.feed(.tick)
        #expect(!script.fresh.contains(.cancel(first.id)))
        script.now = .seconds(106)
        script.feed(.tick)
        #expect(script.fresh.contains(.cancel(first.id)))
    }

    /// With a handshake of 4 s and a stall timeout of 2 s, the further connection is not closed.
    @Test(arguments: [(4, false), (11, true)])
    func aFurtherConnectionHasTheTimeForConnecting(_ seconds: Int, _ isReplaced: Bool) throws {
        var script = try TransferScript {
            ($0.options.connections, $0.options.stallTimeout, $0.connectTimeout) = (2, .seconds(2), .seconds(10))
        }
        script.begin(length: TransferScript.length, position: 1 << 20)
        script.feed(.tick)
        let (first, further) = (script.plans[0], script.last)
        #expect(script.plans.count == 2)
        for second in 1...seconds {
            script.now = .seconds(second)
            script.write(first, to: Int64(second + 1) << 20)
            script.feed(.tick)
        }
        #expect(script.actions.contains(.cancel(further.id)) == isReplaced)
    }

    @Test func aFailedHeadTimeoutIsTriedAgain() throws {
        var script = try TransferScript { $0.options.maximumTries = 2 }
        script.feed(.begin(nil))
        script.end(cut(.headTimedOut))
        script.now = .seconds(100)
        script.feed(.tick)
        #expect(script.plans.count == 2)
        script.end(cut(.headTimedOut))
        #expect(script.failure?.code == .transient)
    }
}
