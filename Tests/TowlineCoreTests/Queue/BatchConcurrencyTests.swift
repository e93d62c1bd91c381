import Testing
import TowlineCore

@Suite("Downloads of a batch at once")
struct BatchConcurrencyTests {
    @Test("the limit that the user sets does not change")
    func fixed() {
        for wanted in [1, 3, 500] {
            var concurrency = BatchConcurrency(fixed: wanted)
            for _ in 0..<20 { concurrency.fetched(after: .milliseconds(3), now: .zero) }
            #expect(concurrency.limit == wanted)
        }
        #expect(BatchConcurrency(fixed: 0).limit == 1)
    }

    @Test("five downloads, sixteen while they are short, five again when they are long")
    func follows() {
        var concurrency = BatchConcurrency()
        #expect(concurrency.limit == 5)
        concurrency.fetched(after: .milliseconds(20), now: .zero)
        #expect(concurrency.limit == 5, "one duration is not enough")
        concurrency.fetched(after: .milliseconds(20), now: .zero)
        #expect(concurrency.limit == 16)
        // A long download among short ones weighs an eighth.
        concurrency.fetched(after: .seconds(4), now: .zero)
        #expect(concurrency.limit == 16)
        concurrency.fetched(after: .seconds(30), now: .zero)
        #expect(concurrency.limit == 5)
        for _ in 0..<40 { concurrency.fetched(after: .milliseconds(20), now: .zero) }
        #expect(concurrency.limit == 16)
    }

    @Test("a hundred short downloads while they share a connection, sixteen as soon as some do not")
    func shared() {
        var concurrency = BatchConcurrency()
        for _ in 0..<8 { concurrency.fetched(after: .milliseconds(20), .one, now: .zero) }
        #expect(concurrency.limit == 16)
        concurrency.fetched(after: .milliseconds(20), .one, now: .zero)
        #expect(concurrency.limit == 100)
        var far = BatchConcurrency()
        for _ in 0..<10 { far.fetched(after: .milliseconds(70), .several, now: .zero) }
        #expect(far.limit == 264)
        far.fetched(after: .milliseconds(5), .one, now: .zero)
        #expect(far.limit == 100)
        #expect(BatchConcurrency(affordable: 3).limit == 3)
        concurrency.fetched(after: .milliseconds(20), .none, now: .zero)
        #expect(concurrency.limit == 16)
        var long = BatchConcurrency()
        for _ in 0..<40 { long.fetched(after: .seconds(3), .one, now: .zero) }
        #expect(long.limit == 5)
        var fixed = BatchConcurrency(fixed: 3)
        for _ in 0..<40 { fixed.fetched(after: .milliseconds(1), .one, now: .zero) }
        #expect(fixed.limit == 3)
    }

    @Test("no more downloads than the descriptors allow")
    func descriptors() {
        #expect(BatchConcurrency.affordable(descriptors: 20_000) == 6645)
        #expect(BatchConcurrency.affordable(descriptors: 112) == 16)
        #expect(BatchConcurrency.affordable(descriptors: 16) == 1)
        #expect(BatchConcurrency.affordablePublishing(descriptors: 1024) == 240)
        #expect(BatchConcurrency.affordablePublishing(descriptors: 20_000) == BatchConcurrency.mostPublishing)
        #expect(BatchConcurrency.affordablePublishing(descriptors: 112) == 12)
        #expect(BatchConcurrency.affordablePublishing(descriptors: 16) == 0)
    }

    /// A batch whose files each take a given time.
    private struct Far {
        var concurrency = BatchConcurrency()
        var now = Duration.zero
        let origin: HTTPURL.Origin

        init() throws { origin = try HTTPURL(parsing: "http://far.example/a").origin }

        mutating func fetch(_ count: Int, _ duration: Duration, _ sharing: ConnectionSharing = .none) {
            for _ in 0..<count {
                now += duration / concurrency.limit
                concurrency.fetched(after: duration, sharing, from: origin, now: now)
            }
        }

        /// The number of downloads at once, and of connections to that host.
        var limits: [Int] { [concurrency.limit, concurrency.connections(to: origin)] }
    }

    @Test("short downloads from a distant host with connections of their own: as many as the search finds to pay off")
    func search() throws {
        var far = try Far()
        far.fetch(40, .milliseconds(80))
        #expect(far.limits == [64, 64])
        let other = try HTTPURL(parsing: "http://other.example/a").origin
        #expect(far.concurrency.connections(to: other) == 16)
        far.concurrency.refused(by: other, now: far.now)
        #expect(far.limits == [64, 64])
        far.concurrency.failed(at: other, now: far.now)
        #expect(far.limits == [64, 64])
        far.concurrency.failed(at: far.origin, now: far.now)
        #expect(far.limits == [32, 32])
        // Streams do not count as connections.
        far.fetch(10, .milliseconds(80), .several)
        #expect(far.limits == [264, 16])
        far.fetch(9, .milliseconds(80))
        #expect(far.limits == [32, 32])
        far.concurrency.refused(by: far.origin, now: far.now)
        far.fetch(2000, .milliseconds(80))
        #expect(far.limits == [16, 16])
        #expect(BatchConcurrency(fixed: 7).connections(to: other) == 7)
    }

    @Test("a download that takes four times as long among four times as many still counts as short")
    func slowLine() throws {
        var far = try Far()
        var limits: Set<Int> = []
        // The line transfers thirty-two files a second, however many downloads run.
        for number in 0..<1000 {
            far.fetch(1, .seconds(1) * max(5, far.concurrency.limit) / 32)
            if number > 5 { limits.insert(far.concurrency.limit) }
        }
        #expect(limits == [16, 64], "\(limits)")
    }

    @Test("sixteen long downloads leave no slot for more")
    func longAmongThem() throws {
        var far = try Far()
        far.fetch(40, .milliseconds(80))
        far.concurrency.tookUpLong(15)
        #expect(far.limits == [64, 64])
        far.concurrency.tookUpLong(1)
        #expect(far.limits == [16, 16])
        far.concurrency.tookUpLong(-1)
        #expect(far.limits == [64, 64])
    }

    @Test("a download that ends without bytes does not change the estimate of the host's distance")
    func withoutBytes() throws {
        var far = try Far()
        far.fetch(8, .milliseconds(80))
        for _ in 0..<100 { far.concurrency.ended(after: .milliseconds(1)) }
        #expect(far.limits == [16, 16])
        far.fetch(40, .milliseconds(80))
        #expect(far.limits == [64, 64])
    }

    @Test("the limit stays five for long downloads")
    func long() {
        var concurrency = BatchConcurrency()
        for _ in 0..<20 { concurrency.fetched(after: .seconds(60), now: .zero) }
        #expect(concurrency.limit == 5)
    }

    @Test("a download that waits for its next attempt gives up its slot, unless that is useless")
    func places() {
        var concurrency = BatchConcurrency()
        func leaves(_ wait: Duration = .seconds(1), isAsked: Bool = false, isLong: Bool = false) -> Bool {
            concurrency.leavesPlace(for: wait, isAsked: isAsked, isLong: isLong)
        }
        #expect(leaves() && !leaves(.milliseconds(100)) && !leaves(.seconds(100), isLong: true))
        // If no download receives bytes, the network fails and not this server.
        let count = (0..<100).count { _ in leaves() }
        #expect(count == 63)
        // A wait that the server asked for does not count as such a failure.
        #expect(leaves(isAsked: true) && !leaves() && !leaves(isAsked: true, isLong: true))
        concurrency.fetched(after: .seconds(1), now: .seconds(1))
        #expect(leaves())
        concurrency = BatchConcurrency(fixed: 1)
        #expect(!leaves(.seconds(100)))
    }
}
