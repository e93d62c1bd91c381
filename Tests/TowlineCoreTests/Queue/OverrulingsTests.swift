import Testing
import TowlineCore

/// What the caller said while the list was looked at counts more than what was read.
@Suite struct OverrulingsTests {
    private let one = DownloadID(milliseconds: 1, random: (0, 1))
    private let other = DownloadID(milliseconds: 1, random: (0, 2))

    @Test func aWordThatIsBeingWrittenDownHolds() {
        var overrulings = Overrulings()
        overrulings.begin(one)
        overrulings.beginLook()
        #expect(overrulings.holds(one))
        #expect(!overrulings.holds(other))
    }

    @Test func aWordThatWasWrittenDownSinceTheLookBeganHoldsUntilTheNext() {
        var overrulings = Overrulings()
        overrulings.beginLook()
        overrulings.begin(one)
        overrulings.end(one)
        #expect(overrulings.holds(one))
        overrulings.beginLook()
        #expect(!overrulings.holds(one))
    }

    @Test func ofTwoWordsTheLastOneLetsGo() {
        var overrulings = Overrulings()
        overrulings.begin(one)
        overrulings.begin(one)
        overrulings.end(one)
        overrulings.beginLook()
        #expect(overrulings.holds(one))
        overrulings.end(one)
        overrulings.beginLook()
        #expect(!overrulings.holds(one))
    }

    @Test func aWordAboutManyHoldsAll() {
        var overrulings = Overrulings()
        overrulings.beginMany()
        overrulings.beginLook()
        #expect(overrulings.holds(one) && overrulings.holds(other))
        overrulings.endMany()
        #expect(overrulings.holds(other))
        overrulings.beginLook()
        #expect(!overrulings.holds(one) && !overrulings.holds(other))
    }
}
