import Testing
import TowlineCore

@Suite("Hosts whose small files share a connection")
struct SharingPolicyTests {
    private func policy(_ answers: [SharingPolicy.Evidence]) -> SharingPolicy {
        var policy = SharingPolicy()
        for answer in answers { policy.answered(answer, after: .milliseconds(5)) }
        return policy
    }

    private func small(_ count: Int) -> [SharingPolicy.Evidence] { Array(repeating: .small, count: count) }

    @Test("two small answers in a row")
    func begins() {
        #expect(policy([]).sharing == .none && policy(small(1)).sharing == .none && policy(small(2)).sharing == .one)
        #expect(policy([.small, .long, .small]).sharing == .none)
    }

    @Test(
        "each mistake makes the next guess take twice as much, up to sixty-four",
        arguments: [SharingPolicy.Evidence.long, .broken])
    func mistakes(_ mistake: SharingPolicy.Evidence) {
        var answers: [SharingPolicy.Evidence] = small(2) + [mistake]
        for needed in [4, 8, 16, 32, 64, 64, 64] {
            #expect(policy(answers + small(needed - 1)).sharing == .none)
            answers += small(needed)
            #expect(policy(answers).sharing == .one)
            answers.append(mistake)
        }
    }

    @Test("sixty-four small answers in a row halve the cost of a mistake")
    func forgiven() {
        let mistaken = small(2) + [.long] + small(4) + [.long] + small(8) + [.long]
        #expect(policy(mistaken + small(15)).sharing == .none && policy(mistaken + small(16)).sharing == .one)
        // Sixteen small answers are needed; after sixty-four, eight. The next mistake makes it sixteen again.
        let forgiven = mistaken + small(64) + [.long]
        #expect(policy(forgiven + small(15)).sharing == .none && policy(forgiven + small(16)).sharing == .one)
        #expect(policy(mistaken + small(63) + [.long] + small(31)).sharing == .none)
    }

    @Test("the result of an attempt as an answer of its host")
    func ends() {
        func answer(_ result: AttemptResult, shared: Bool, isStream: Bool, _ promise: SharingPolicy.Evidence?)
            -> SharingPolicy.Evidence?
        { SharingPolicy.Evidence(result, shared: shared, isStream: isStream, promise: promise) }
        for shared in [true, false] {
            #expect(answer(.complete(.delimited), shared: shared, isStream: true, .small) == .small)
            #expect(answer(.complete(.delimited), shared: shared, isStream: true, nil) == nil, "an unwanted answer")
            #expect(answer(cut(), shared: shared, isStream: true, .small) == (shared ? .broken : nil))
            #expect(answer(.complete(.delimited), shared: shared, isStream: false, .small) == (shared ? .broken : nil))
            #expect(answer(.cancelled, shared: shared, isStream: true, .small) == nil)
        }
        #expect(answer(.needsOwnConnection, shared: true, isStream: true, .long) == .long)
        #expect(answer(.needsOwnConnection, shared: true, isStream: true, .small) == nil, "there was no room for it")
    }

    @Test("several connections if even the quickest answer was slow, for as long as they are shared")
    func far() {
        func sharing(_ milliseconds: Int...) -> ConnectionSharing {
            var policy = SharingPolicy()
            for time in milliseconds { policy.answered(.small, after: .milliseconds(time)) }
            return policy.sharing
        }
        #expect(sharing(40) == .none)
        #expect(sharing(40, 300) == .several)
        #expect(sharing(39, 300) == .one)
        #expect(sharing(300, 39) == .one)
        #expect(sharing(300, 300, 5) == .several, "a later change is no reason for other connections")
        #expect(sharing(5, 300, 300, 300) == .one, "near ones wait for one another")
        var mistaken = SharingPolicy()
        for _ in 0..<2 { mistaken.answered(.small, after: .seconds(1)) }
        mistaken.answered(.long, after: .seconds(1))
        for _ in 0..<3 { mistaken.answered(.small, after: .seconds(1)) }
        #expect(mistaken.sharing == .none)
        mistaken.answered(.small, after: .milliseconds(5))
        #expect(mistaken.sharing == .one, "sharing restarts, and the host is known to be near")
    }

    @Test("a long answer is no mistake if the connection was never shared")
    func longOnes() {
        #expect(policy(Array(repeating: .long, count: 20) + small(2)).sharing == .one)
    }
}

@Suite("A transfer whose connection may be shared")
struct TransferSharingTests {
    @Test("the first request shares where the host's answers are small, and no other does")
    func first() throws {
        var script = try TransferScript()
        script.sharing = .one
        script.feed(.begin(nil))
        #expect(script.last.sharesConnection && script.last.field("Range") == "bytes=0-262143")
        script.answer(302, [("Location", "https://mirror.example/file.iso")])
        script.endCancelled()
        #expect(script.last.url.host == "mirror.example" && !script.last.sharesConnection)
        var alone = try TransferScript()
        alone.feed(.begin(nil))
        #expect(!alone.last.sharesConnection)
        var stream = try TransferScript { $0.isStream = true }
        stream.sharing = .one
        stream.feed(.begin(nil))
        #expect(!stream.last.sharesConnection)
    }

    @Test("a file that is not small is requested at once over a connection of its own, without a failure")
    func long() throws {
        var script = try TransferScript { $0.options.maximumTries = 1 }
        script.sharing = .one
        script.feed(.begin(nil))
        script.end(.needsOwnConnection)
        #expect(script.plans.count == 2 && !script.last.sharesConnection)
        #expect(script.last.field("Range") == "bytes=0-")
        #expect(script.notices(.retrying).isEmpty)
        script.answer(206, [("Content-Range", "bytes 0-9999999/10000000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 10_000_000)
        script.end(.complete(.delimited))
        #expect(script.ending == nil && script.failure == nil)
        let isPublished = script.actions.contains { if case .publish = $0 { true } else { false } }
        #expect(isPublished)
    }

    @Test("but not before it may have a connection")
    func full() throws {
        var script = try TransferScript { $0.options.connections = nil }
        script.sharing = .one
        script.feed(.begin(nil))
        script.mayConnect = false
        script.end(.needsOwnConnection)
        #expect(script.plans.count == 1 && TransferSnapshot(of: &script.machine, now: .zero).state == .queued)
        script.feed(.tick)
        #expect(script.plans.count == 1 && TickPolicy.wakeAt(script.machine) == nil)
        script.mayConnect = true
        script.feed(.tick)
        #expect(script.plans.count == 2 && !script.last.sharesConnection)
        #expect(TransferSnapshot(of: &script.machine, now: .zero).state == .connecting)
    }

    @Test("a download that cannot share waits from the beginning")
    func queued() throws {
        var script = try TransferScript()
        script.mayConnect = false
        script.feed(.begin(nil))
        #expect(script.plans.isEmpty && TransferSnapshot(of: &script.machine, now: .zero).state == .queued)
        script.feed(.stop)
        #expect(script.ending == .stopped)
    }

    @Test("a server that asks for fewer requests gets no more streams on the connection", arguments: [429, 503])
    func busy(_ status: Int) throws {
        var script = try TransferScript()
        script.sharing = .one
        script.feed(.begin(nil))
        script.answer(status)
        #expect(script.fresh.contains(.report(.sharingFailed, of: script.last.url.origin)))
        script.endCancelled()
        script.now = .seconds(2)
        script.feed(.tick)
        #expect(script.plans.count == 2 && !script.last.sharesConnection)
    }

    @Test("a stalled request is sent again over a connection of its own, and the stall is reported for the host")
    func stalled() throws {
        var script = try TransferScript()
        script.sharing = .one
        script.feed(.begin(nil))
        let shared = script.last
        script.now = .seconds(31)
        script.feed(.tick)
        #expect(script.fresh.contains(.cancel(shared.id)))
        #expect(script.fresh.contains(.report(.sharingFailed, of: shared.url.origin)))
        script.endCancelled()
        #expect(script.plans.count == 2 && !script.last.sharesConnection, "at once")
        #expect(!script.notices(.retrying).contains { $0.message.contains("attempt 1") })
        // The new request waits in no queue: the transport applies the time limits for connecting and for the response
        // head.
        script.now = .seconds(62)
        script.feed(.tick)
        #expect(!script.fresh.contains(.cancel(script.last.id)) && script.plans.count == 2)
        // The time limit for the head counts as a failed attempt, with a wait.
        script.end(cut(.headTimedOut))
        #expect(script.notices(.retrying).last?.message.contains(", attempt 1 of ") == true)
        #expect(script.plans.count == 2)
    }

    @Test(
        "one whose connection ends, or is one too many of several, is asked for at once over its own",
        arguments: [
            (.one, .closedBeforeHead), (.one, .streamRefused), (.one, .headTimedOut), (.one, .bodyCut),
            (.several, .closedBeforeHead), (.several, .connectFailed), (.several, .connectTimedOut),
            (.several, .tlsFailed),
        ] as [(ConnectionSharing, TransportFailure.Kind)])
    func ended(_ sharing: ConnectionSharing, _ kind: TransportFailure.Kind) throws {
        var script = try TransferScript()
        script.sharing = sharing
        script.feed(.begin(nil))
        script.end(cut(kind))
        #expect(script.notices(.retrying).isEmpty)
        #expect(script.plans.count == 2 && !script.last.sharesConnection)
        // If the second attempt also ends, the next request waits. After a close, a request without Range comes first.
        script.end(cut(kind))
        if kind == .closedBeforeHead { script.end(cut(kind)) }
        #expect(script.notices(.retrying).count == 1)
        #expect(script.plans.count == (kind == .closedBeforeHead ? 3 : 2))
    }

    @Test("and so is a request whose connection ends after the head")
    func endedBehindTheHead() throws {
        var script = try TransferScript()
        script.sharing = .one
        script.feed(.begin(nil))
        script.answer(206, [("Content-Range", "bytes 0-999/1000"), ("ETag", "\"a\"")])
        script.end(cut(.bodyCut))
        #expect(script.notices(.retrying).isEmpty)
        script.feed(.prepared)
        #expect(script.plans.count == 2 && !script.last.sharesConnection)
    }

    @Test("a possible small file is spread over threads unless that opens too many connections")
    func spread() throws {
        for (sharing, ceiling, spreads) in [
            (ConnectionSharing.none, nil, true), (.one, nil, true), (.several, nil, false), (.none, 4, false),
            (.one, 4, false),
        ] as [(ConnectionSharing, Int?, Bool)] {
            var script = try TransferScript()
            script.sharing = sharing
            script.feed(.begin(nil))
            #expect(SharingPolicy.spreads(script.last, hostCeiling: ceiling) == spreads, "\(sharing) \(ceiling as Any)")
            for change: (inout AttemptPlan) -> Void in [
                { $0.joinsDirectly = true }, { $0.lease = ByteRange(1, .max) }, { $0.overlap = 1 },
            ] {
                var plan = script.last
                change(&plan)
                #expect(!SharingPolicy.spreads(plan, hostCeiling: nil))
            }
        }
    }

    @Test("a host that allows few connections is not asked over several")
    func ceiling() throws {
        var script = try TransferScript()
        script.sharing = .several
        script.hostCeiling = 4
        script.feed(.begin(nil))
        #expect(script.last.sharing == .one)
        for (others, sharing) in [(16, ConnectionSharing.several), (17, .one)] {
            var script = try TransferScript()
            script.sharing = .several
            script.otherConnections = others
            script.feed(.begin(nil))
            #expect(script.last.sharing == sharing)
        }
    }

    @Test("findings about the host of the first URL do not apply to the host of the next URL")
    func anotherHost() throws {
        var script = try TransferScript { terms in
            terms.mirrors = [try? HTTPURL(parsing: "https://m1.example/file.iso")].compactMap(\.self)
        }
        script.sharing = .several
        script.feed(.begin(nil))
        #expect(script.last.sharing == .several)
        for _ in 0..<2 { script.refuse(404, .other) }
        #expect(script.last.url.host == "m1.example" && script.last.sharing == .none)
    }

    @Test("other failures are retried as usual")
    func broken() throws {
        var script = try TransferScript()
        script.sharing = .one
        script.feed(.begin(nil))
        script.end(cut(.connectFailed))
        #expect(script.notices(.retrying).count == 1)
        script.now = .seconds(2)
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.sharesConnection)
    }
}
