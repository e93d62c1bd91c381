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

    // MARK: Pauses in a body

    /// Returns a download of 4,000,000 bytes whose response is silent since the given offset.
    private func silent(at position: Int64, tag: String?, _ timeout: Duration = .seconds(30)) throws -> TransferScript {
        var script = try TransferScript { $0.options.stallTimeout = timeout }
        script.begin(length: 4_000_000, position: position, tag: tag)
        return script
    }

    private func state(_ script: TransferScript) -> DownloadState {
        var machine = script.machine
        return TransferSnapshot(of: &machine, now: script.now).state
    }

    /// Lets seconds pass without a byte.
    private func pass(_ seconds: Int, _ script: inout TransferScript) {
        for _ in 0..<seconds where script.plans.count == 1 {
            script.now += .seconds(1)
            script.feed(.tick)
        }
    }

    @Test func aResponseWhoseBytesWouldBeLostIsNotCutForAPause() throws {
        var script = try silent(at: 2_000_000, tag: nil)
        pass(31, &script)
        #expect(!script.actions.contains(.cancel(script.plans[0].id)))
        #expect(script.notices(.waiting).count == 1)
        #expect(state(script) == .waiting(.server))
        #expect(script.machine.wait(now: script.now).map { $0 <= .seconds(270) && $0 > .seconds(260) } == true)
        pass(200, &script)
        #expect(!script.actions.contains(.cancel(script.plans[0].id)) && script.notices(.waiting).count == 1)
        script.write(to: 2_100_000)
        script.feed(.tick)
        #expect(state(script) == .downloading)
        pass(301, &script)
        #expect(script.actions.contains(.cancel(script.plans[0].id)) && script.notices(.waiting).count == 2)
    }

    @Test("the limit is ten times the stall timeout of the user", arguments: [1, 7]) func shortLimit(_ seconds: Int)
        throws
    {
        var script = try silent(at: 2_000_000, tag: nil, .seconds(seconds))
        pass(seconds * 10 - 1, &script)
        #expect(!script.actions.contains(.cancel(script.plans[0].id)))
        pass(2, &script)
        #expect(script.actions.contains(.cancel(script.plans[0].id)))
    }

    @Test(
        "a response that can be resumed, is short or has no byte is cut after the stall timeout",
        arguments: [(2_000_000, "\"a\""), (1_000_000, nil), (0, nil)] as [(Int64, String?)])
    func stalled(_ position: Int64, _ tag: String?) throws {
        var script = try silent(at: position, tag: tag)
        pass(31, &script)
        #expect(script.actions.contains(.cancel(script.plans[0].id)))
    }

    @Test func aChangeOfTheNetworkEndsTheWait() throws {
        var script = try silent(at: 2_000_000, tag: nil)
        pass(20, &script)
        script.feed(.networkChanged(.available))
        #expect(!script.actions.contains(.cancel(script.plans[0].id)), "the response is not silent for long")
        pass(20, &script)
        script.feed(.networkChanged(.available))
        #expect(script.actions.contains(.cancel(script.plans[0].id)))
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
