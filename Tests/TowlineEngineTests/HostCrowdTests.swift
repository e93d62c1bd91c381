import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("The number of downloads that a host serves at the same time")
struct HostCrowdTests {
    @Test("a host that refuses all but one is asked one at a time, after a few refusals")
    func single() {
        var crowd = HostCrowd()
        var refusals = 0
        while crowd.limit != 1, refusals < 100 {
            let count = min(5, crowd.limit ?? 5)
            crowd.answered()
            for _ in 1..<count { crowd.refused(among: count) }
            refusals += count - 1
        }
        #expect(crowd.limit == 1)
        #expect(refusals < 10)
    }

    @Test("a host that refuses now and then, or has one request, is not limited")
    func flaky() {
        var crowd = HostCrowd()
        for number in 1...1000 {
            if number.isMultiple(of: 5) { crowd.refused(among: 5) } else { crowd.answered() }
        }
        #expect(crowd.limit == nil)
        crowd = HostCrowd()
        for _ in 1...10 { crowd.refused(among: 1) }
        #expect(crowd.limit == nil)
    }

    @Test("a host that leaves requests waiting gets fewer, and more again after many answers")
    func waiting() {
        var crowd = HostCrowd()
        crowd.kept(among: 5)
        crowd.kept(among: 4)
        #expect(crowd.limit == 3)
        for _ in 1...40 { crowd.answered() }
        #expect(crowd.limit == 4)
        for _ in 1...10 { crowd.kept(among: 1) }
        #expect(crowd.limit == 1)
    }
}
