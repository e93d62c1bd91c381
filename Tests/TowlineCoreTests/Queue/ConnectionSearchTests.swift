import Testing

@testable import TowlineCore

/// A host that answers after a round trip, and sends no more than so many files a second, of which so many are under way as
/// the search allows.
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

    /// So many files more.
    mutating func fetch(_ count: Int) {
        for _ in 0..<count {
            while running.count < search.limit {
                sentUntil = max(sentUntil, now) + 1 / filesPerSecond
                // Each a little different.
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

@Suite("Short downloads at once, each with a connection of its own")
struct ConnectionSearchTests {
    @Test("near a host sixteen keep it busy, however many files there are")
    func near() {
        var host = Host(roundTrip: 0.002)
        for _ in 0..<2000 {
            host.fetch(10)
            #expect(host.search.limit == 16)
        }
    }

    @Test("from far away it is sixty-four, as soon as a few that began with sixteen tell how long one takes")
    func far() {
        var host = Host(roundTrip: 0.05)
        // Sixteen are under way when the first ends.
        host.fetch(16 + 4)
        #expect(host.search.limit == 16)
        host.fetch(1)
        #expect(host.search.limit == 64)
        host.fetch(1000)
        #expect(host.search.limit == 64)
    }

    @Test("where the line is full with sixteen it is sixteen again, and that is not asked soon")
    func full() {
        var host = Host(roundTrip: 0.05, filesPerSecond: 200)
        host.fetch(21)
        #expect(host.search.limit == 64)
        host.fetch(256)
        #expect(host.search.limit == 16)
        let time = host.now
        while host.now < time + 14 {
            host.fetch(1)
            #expect(host.search.limit == 16)
        }
        // The network may be another one.
        host.filesPerSecond = .infinity
        host.fetch(1000)
        #expect(host.search.limit == 64)
    }

    @Test("where some more fill the line, so many stay")
    func some() {
        // Sixteen bring 320 a second.
        var host = Host(roundTrip: 0.05, filesPerSecond: 640)
        host.fetch(21 + 256)
        #expect((33...44).contains(host.search.limit), "\(host.search.limit)")
        // And are tried again later, each time after twice as long.
        var tried: [Double] = []
        while host.now < 120 {
            host.fetch(1)
            if host.search.limit == 16, tried.last.map({ host.now > $0 + 1 }) ?? true { tried.append(host.now) }
        }
        #expect(tried.count == 3, "\(tried)")
        #expect((33...44).contains(host.search.limit), "\(host.search.limit)")
    }

    @Test("two doublings that bring less than a tenth each are taken back", arguments: [(1.15, 16), (1.3, 26)])
    func gain(_ gain: Double, _ limit: Int) {
        var host = Host(roundTrip: 0.05, filesPerSecond: 320 * gain)
        host.fetch(21 + 256)
        #expect((limit - 1...limit + 1).contains(host.search.limit), "\(host.search.limit)")
    }

    @Test("an attempt that fails takes back one doubling, several at once no more; the next later failure the other")
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
        // Twice as long as the first finding is believed, and twice as long again.
        host.fetch(16 * 20 * 10)
        #expect(host.search.limit == 16)
        while host.now < now + 70 { host.fetch(1) }
        #expect(host.search.limit == 64)
    }

    @Test("while attempts fail no more are tried")
    func fails() {
        var host = Host(roundTrip: 0.05)
        host.fetch(5)
        host.search.failed(now: .seconds(host.now))
        host.fetch(1000)
        #expect(host.search.limit == 16)
    }
}
