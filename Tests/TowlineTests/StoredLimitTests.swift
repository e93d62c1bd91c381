import Testing
import TowlineCore

@testable import Towline

/// The limits as the registry stores them.
@Suite struct StoredLimitTests {
    static let limits: [(StoredLimit, String, String?)] = [
        (.running(7), "limit/running", "7"), (.perHost(2), "limit/host", "2"), (.rate(0), "limit/rate", "0"),
        (.group("a/b", 0), "limit/group/a/b", "0"), (.group("running", nil), "limit/group/running", nil),
    ]

    @Test(arguments: limits) func aStoredLimitIsReadBack(_ limit: StoredLimit, _ name: String, _ value: String?) {
        #expect(limit.name == name)
        #expect(limit.value == value)
        if let value { #expect(StoredLimit(name: name, value: value) == limit) }
    }

    @Test func unknownValuesAreIgnored() {
        #expect(StoredLimit(name: "limit/other", value: "1") == nil)
        #expect(StoredLimit(name: "limit/running", value: "many") == nil)
    }

    @Test(arguments: [.running(0), .perHost(0), .rate(-1), .group("a", -1)] as [StoredLimit])
    func aLimitOutsideItsRangeIsRefused(_ limit: StoredLimit) {
        #expect(throws: TowlineError.self) { try limit.check() }
    }
}
