import Testing

@testable import TowlineCore

/// A host that answers after one round trip and sends at most a given number of files per second. As many files are
/// under way as the search allows.
private struct Host {
    var roundTrip: Double
    var filesPerSecond = Double.infinity
    var search = ConnectionSearch()
    private(set) var now = 0.0
    private var sentUntil = 0.0
    private var running: [(began: Double, ends: Double)] = []

    init(roundTrip: Double, filesPerSecond: Double = .infinity) {
        self.roundTrip = roundTrip
        self.filesPerSecond = filesPerSecond
    }

    /// Fetches `count` more files.
    mutating func fetch(_ count: Int) {
        for _ in 0..<count {
            while running.count < search.limit {
                sentUntil = max(sentUntil, now) + 1 / filesPerSecond
                // Each file takes a slightly different time.
                let jitter = 1 + Double(running.count % 7) / 200
                running.append((now, max(now + roundTrip * jitter, sentUntil)))
            }
            let next = running.indices.min { running[$0].ends < running[$1].ends }!
            let file = running.remove(at: next)
            now = file.ends
            search.fetched(after: .seconds(file.ends - file.began), now: .seconds(now))
        }
    }
}

@Suite("Concurrent short downloads, each with a connection of its own")
struct ConnectionSearchTests {
    @Test("sixteen connections keep a near host busy, however many files there are")
    func near() {
        var host = Host(roundTrip: 0.002)
        for _ in 0..<2000 {
            host.fetch(10)
            #expect(host.search.limit == 16)
        }
    }

    @Test("a distant host gets sixty-four connections once a few downloads have shown how long one takes")
    func far() {
        var host = Host(roundTrip: 0.05)
        // Sixteen downloads are under way when the first ends.
        host.fetch(16 + 4)
        #expect(host.search.limit == 16)
        host.fetch(1)
        #expect(host.search.limit == 64)
        host.fetch(1000)
        #expect(host.search.limit == 64)
    }

    @Test("a line that sixteen connections fill gets sixteen again, and no new search soon")
    func full() {
        var host = Host(roundTrip: 0.05, filesPerSecond: 200)
        host.fetch(21)
        #expect(host.search.limit == 64)
        host.fetch(256)
        #expect(host.search.limit == 16)
        host.fetch(112)
        #expect(host.search.limit == 16)
        let time = host.now
        while host.now < time + 14 {
            host.fetch(1)
            #expect(host.search.limit == 16)
        }
        // The network may have changed.
        host.filesPerSecond = .infinity
        host.fetch(1000)
        #expect(host.search.limit == 64)
    }

    @Test("if a few more connections fill the line, the limit stays at that number")
    func some() {
        // Sixteen connections fetch 320 files a second.
        var host = Host(roundTrip: 0.05, filesPerSecond: 640)
        host.fetch(21 + 256 + 112)
        #expect((33...44).contains(host.search.limit), "\(host.search.limit)")
        // The search repeats later, each time after twice the pause.
        var tried: [Double] = []
        while host.now < 120 {
            host.fetch(1)
            if host.search.limit == 16, tried.last.map({ host.now > $0 + 5 }) ?? true { tried.append(host.now) }
        }
        #expect(tried.count == 3, "\(tried)")
        #expect((33...44).contains(host.search.limit), "\(host.search.limit)")
    }

    @Test("two doublings that gain less than a tenth each are undone", arguments: [(1.15, 16), (1.3, 26)])
    func gain(_ gain: Double, _ limit: Int) {
        var host = Host(roundTrip: 0.05, filesPerSecond: 320 * gain)
        host.fetch(21 + 256 + 112)
        #expect((limit - 1...limit + 1).contains(host.search.limit), "\(host.search.limit)")
    }

    @Test("a failed attempt undoes one doubling, several at once no more; the next later failure undoes the other")
    func failed() {
        var host = Host(roundTrip: 0.05)
        host.fetch(500)
        #expect(host.search.limit == 64)
        let now = host.now
        for number in 0..<40 { host.search.failed(now: .seconds(now + Double(number) / 100)) }
        #expect(host.search.limit == 32)
        host.search.failed(now: .seconds(now + 2))
        #expect(host.search.limit == 16)
        host.search.failed(now: .seconds(now + 4))
        #expect(host.search.limit == 16)
        // The pause is twice as long as after the first finding, and then twice as long again.
        host.fetch(16 * 20 * 10)
        #expect(host.search.limit == 16)
        while host.now < now + 70 { host.fetch(1) }
        #expect(host.search.limit == 64)
    }

    @Test("while attempts fail, the limit is not raised")
    func fails() {
        var host = Host(roundTrip: 0.05)
        host.fetch(5)
        host.search.failed(now: .seconds(host.now))
        host.fetch(1000)
        #expect(host.search.limit == 16)
    }

    @Test("uneven durations do not make the search trust the quickest downloads")
    func uneven() {
        // A tenth of the files take 1.2 s: sixteen connections fetch 97 a second, and the first five that end are not
        // in that tenth.
        var search = ConnectionSearch()
        var now = 0.0
        var running: [(began: Double, ends: Double)] = []
        for number in 0..<1200 {
            while running.count < search.limit {
                running.append((now, now + ((number + running.count) % 10 == 9 ? 1.2 : 0.05)))
            }
            let next = running.indices.min { running[$0].ends < running[$1].ends }!
            let file = running.remove(at: next)
            now = file.ends
            search.fetched(after: .seconds(file.ends - file.began), now: .seconds(now))
        }
        #expect(search.limit >= 40, "\(search.limit)")
    }

    @Test("the search covers one host and restarts when another host replaces it")
    func otherHost() throws {
        let hosts = try ["a", "b"].map { try HTTPURL(parsing: "http://\($0).example/").origin }
        var search = ConnectionSearch()
        var now = Duration.zero
        func fetch(_ count: Int, _ host: Int, _ duration: Duration) {
            for _ in 0..<count {
                now += duration / search.limit
                search.fetched(after: duration, from: hosts[host], now: now)
            }
        }
        fetch(600, 0, .milliseconds(80))
        #expect(search.limit == 64 && search.origin == hosts[0])
        for _ in 0..<100 {
            fetch(1, 1, .milliseconds(5))
            fetch(1, 0, .milliseconds(80))
        }
        #expect(search.limit == 64 && search.origin == hosts[0])
        fetch(16, 1, .milliseconds(5))
        #expect(search.limit == 16 && search.origin == hosts[1])
        fetch(500, 1, .milliseconds(5))
        #expect(search.limit == 16)
        search.refused(by: hosts[1], now: now)
        fetch(600, 0, .milliseconds(80))
        #expect(search.limit == 64 && search.origin == hosts[0])
        search.refused(by: hosts[0], now: now)
        fetch(20_000, 0, .milliseconds(80))
        #expect(search.limit == 16)
        // Asking another host in between does not restart it either, and the refusal of that host is remembered.
        fetch(16, 1, .milliseconds(80))
        #expect(search.origin == hosts[1])
        fetch(1000, 1, .milliseconds(80))
        #expect(search.limit == 16)
        fetch(1000, 0, .milliseconds(80))
        #expect(search.limit == 16 && search.origin == hosts[0])
        now += .seconds(3600)
        fetch(600, 1, .milliseconds(80))
        #expect(search.limit == 64 && search.origin == hosts[1])
    }

    @Test("a failed attempt at another host does not count")
    func failedElsewhere() throws {
        let hosts = try ["a", "b"].map { try HTTPURL(parsing: "http://\($0).example/").origin }
        var search = ConnectionSearch()
        var now = Duration.zero
        for _ in 0..<600 {
            now += .milliseconds(80) / search.limit
            search.fetched(after: .milliseconds(80), from: hosts[0], now: now)
        }
        #expect(search.limit == 64)
        search.failed(at: hosts[1], now: now)
        #expect(search.limit == 64)
        search.failed(at: hosts[0], now: now)
        #expect(search.limit == 32)
    }

    @Test("a host that refuses before the first byte does not get more connections")
    func refusedAtOnce() throws {
        let origin = try HTTPURL(parsing: "http://a.example/").origin
        var search = ConnectionSearch()
        search.refused(by: origin, now: .seconds(1))
        for number in 0..<1000 {
            search.fetched(after: .milliseconds(80), from: origin, now: .seconds(1) + .milliseconds(5) * number)
        }
        #expect(search.limit == 16)
    }

    @Test("the pause after findings for one host does not apply to another host")
    func pauses() throws {
        let hosts = try ["a", "b"].map { try HTTPURL(parsing: "http://\($0).example/").origin }
        var search = ConnectionSearch()
        var now = Duration.zero
        func fetch(_ host: Int, forMilliseconds time: Int) {
            let end = now + .milliseconds(time)
            while now < end {
                now += .milliseconds(80) / search.limit
                search.fetched(after: .milliseconds(80), from: hosts[host], now: now)
            }
        }
        // After 15, 30 and 60 s the next finding is kept for two minutes.
        fetch(0, forMilliseconds: 110_000)
        fetch(1, forMilliseconds: 2000)
        #expect(search.limit == 64)
        // The search repeats after 15 s and uses sixteen connections for a moment.
        var limits: Set<Int> = []
        for _ in 0..<2000 {
            fetch(1, forMilliseconds: 10)
            limits.insert(search.limit)
        }
        #expect(limits.contains(16))
    }

    @Test("failed attempts, refused files and files that could not be fetched count; missing files do not")
    func whatCounts() {
        #expect(ConnectionSearch.isFailure(TransferNotice.Kind.retrying) && ConnectionSearch.isFailure(.limited))
        #expect(!ConnectionSearch.isFailure(TransferNotice.Kind.resumed) && !ConnectionSearch.isFailure(.redirected))
        #expect(ConnectionSearch.isFailure(TowlineError.Code.refusedByServer) && ConnectionSearch.isFailure(.transient))
        #expect(!ConnectionSearch.isFailure(TowlineError.Code.notFound) && !ConnectionSearch.isFailure(.diskFull))
        #expect(HostReport.overloaded.asksForLess && HostReport.connections(3).asksForLess)
        #expect(!HostReport.paysOff(3).asksForLess && !HostReport.sharingFailed.asksForLess)
    }
}
