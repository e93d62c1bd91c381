import Testing
import TowlineCore

@testable import Towline

/// The decision whether a refused link is renewed.
@Suite struct RenewalCountsTests {
    /// The answers for responses to one link, each with the number of downloaded bytes and of the bytes that the last
    /// transfer received.
    private static func answers(_ responses: [(status: Int, held: Int64, received: Int64)]) -> [Bool] {
        var counts = RenewalCounts()
        let id = DownloadID(milliseconds: 1, random: (0, 1))
        return responses.map { counts.permits(id, status: $0.status, (held: $0.held, received: $0.received)) }
    }

    @Test func onlyALinkThatWorkedCanExpire() {
        #expect(Self.answers([(403, 0, 0), (500, 1, 1), (403, 1, 0)]) == [false, false, true])
    }

    @Test func renewalsWithoutAByteAreLimited() {
        // The byte received before the last response shows that the renewed link worked.
        let answers = Self.answers([(410, 1, 0), (410, 1, 0), (410, 1, 0), (410, 1, 0), (410, 2, 1)])
        #expect(RenewalCounts.maximum == 3 && answers == [true, true, true, false, true])
    }
}
