import Testing

@testable import TowlineCore

@Suite struct ReceiveWindowTests {
    private static let largest: Int64 = 8 << 20

    /// Returns the rule of DESIGN.md for the bytes that a kill may lose: 50 ms of the rate or 512 KiB.
    private static func promise(_ rate: Int64) -> Int64 { max(rate / 20, 512 << 10) }

    @Test(
        "at a short round trip, the whole buffer is smaller than what may be unread",
        arguments: [
            1, 100_000, 2_000_000, 12_000_000, 50_000_000, 150_000_000,
        ] as [Int64])
    func wholeBuffer(_ rate: Int64) throws {
        for roundTrip in [Duration.zero, .microseconds(50), .milliseconds(1)] {
            let window = ReceiveWindow(rate: rate, roundTrip: roundTrip, largest: Self.largest)
            let first = try #require(window.size(from: nil, unread: 0))
            #expect(first <= Self.promise(rate))
            // However few bytes are unread, the buffer of a short round trip hardly grows.
            var size = first
            for _ in 0..<100 { size = try #require(window.size(from: size, unread: 0)) }
            #expect(size <= Self.promise(rate))
        }
    }

    /// A server that fills the window at once: the bytes under way are those of a round trip, the others are unread.
    @Test(
        "the rate is the limit at each round trip, and the unread bytes stay within the promise",
        arguments: [
            (2_000_000, 100), (12_000_000, 10), (12_000_000, 100), (12_000_000, 250), (30_000_000, 100),
        ] as [(Int64, Int64)])
    func fastServer(_ rate: Int64, _ milliseconds: Int64) throws {
        for share in [0.5, 0.7, 0.95] {  // The bytes of a buffer that the kernel does not use for its own records.
            let window = ReceiveWindow(rate: rate, roundTrip: .milliseconds(milliseconds), largest: Self.largest * 4)
            let underWay = rate * milliseconds / 1000
            var size = try #require(window.size(from: nil, unread: 0))
            for _ in 0..<20 {
                let unread = max(0, Int64(Double(size) * share) - underWay)
                size = try #require(window.size(from: size, unread: unread))
            }
            let bytes = Int64(Double(size) * share)
            #expect(bytes >= underWay, "the window limits the rate")
            #expect(bytes - underWay <= Self.promise(rate))
        }
    }

    @Test("a buffer that must be larger than the kernel grants is left to the kernel")
    func smallCeiling() {
        func size(_ rate: Int64, _ milliseconds: Int64) -> Int64? {
            ReceiveWindow(rate: rate, roundTrip: .milliseconds(milliseconds), largest: 416 << 10)
                .size(from: nil, unread: 0)
        }
        #expect(size(12_000_000, 0) == 416 << 10)
        #expect(size(12_000_000, 100) == nil)
        #expect(size(1_000_000, 100) == 362_144)
        #expect(size(.max, 0) == nil)
        #expect(size(.max, 1000) == nil)
    }
}
