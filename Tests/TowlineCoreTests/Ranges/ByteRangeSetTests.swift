import Testing
import TowlineCore

@Suite("Sets of byte ranges")
struct ByteRangeSetTests {
    /// Returns whether the ranges are sorted, disjoint, not touching and not empty.
    private func isSound(_ set: ByteRangeSet) -> Bool {
        set.ranges.allSatisfy { !$0.isEmpty }
            && zip(set.ranges, set.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
    }

    @Test("random operations agree with a plain set of offsets", arguments: 0..<20 as Range<UInt64>)
    func model(_ seed: UInt64) {
        var generator = Generator(seed: seed)
        var set = ByteRangeSet()
        var model = Set<Int64>()
        for _ in 0..<300 {
            let lower = Int64.random(in: 0..<200, using: &generator)
            let range = ByteRange(lower, lower + Int64.random(in: 0..<40, using: &generator))
            let members = Set(range.lowerBound..<range.upperBound)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                set.insert(range)
                model.formUnion(members)
            case 2:
                set.remove(range)
                model.subtract(members)
            case 3:
                #expect(
                    Set(set.gaps(in: range).flatMap { $0.lowerBound..<$0.upperBound }) == members.subtracting(model))
            default:
                #expect(set.contains(range) == members.isSubset(of: model))
                let common = set.intersection(range).ranges.flatMap { $0.lowerBound..<$0.upperBound }
                #expect(Set(common) == members.intersection(model))
            }
            #expect(isSound(set))
            #expect(set.count == Int64(model.count))
        }
        #expect(Set(set.ranges.flatMap { $0.lowerBound..<$0.upperBound }) == model)
    }

    @Test("the far end of the number line overflows nothing")
    func ends() {
        var set = ByteRangeSet([ByteRange(0, .max)])
        set.remove(ByteRange(1 << 41, (1 << 41) + 1))
        #expect(set.gaps(in: ByteRange(0, .max)) == [ByteRange(1 << 41, (1 << 41) + 1)])
        set.insert(ByteRange(.max - 1, .max))
        #expect(set.ranges.count == 2)
    }
}

@Suite("The ledger of ranges")
struct RangeLedgerTests {
    @Test("random leases, progress, cuts and releases lose no byte and invent none", arguments: 0..<30 as Range<UInt64>)
    func model(_ seed: UInt64) {
        var generator = Generator(seed: seed)
        let length: Int64 = 1000
        var ledger = RangeLedger(completeLength: length, written: ByteRangeSet())
        var model = Set<Int64>()
        var next: UInt64 = 0
        for _ in 0..<400 {
            let ids = ledger.leases.map(\.id).sorted { $0.value < $1.value }
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1:
                guard let gap = ledger.missing.randomElement(using: &generator) else { continue }
                next += 1
                ledger.lease(gap, to: AttemptID(next))
            case 2, 3:
                guard let id = ids.randomElement(using: &generator), let lease = ledger.leases[id]?.range else {
                    continue
                }
                let position = Int64.random(in: lease.lowerBound...lease.upperBound, using: &generator)
                model.formUnion(lease.lowerBound..<position)
                ledger.advance(id, to: position)
            case 4:
                guard let id = ids.randomElement(using: &generator), let lease = ledger.leases[id]?.range else {
                    continue
                }
                ledger.shrink(id, to: Int64.random(in: lease.lowerBound...lease.upperBound, using: &generator))
            default:
                if let id = ids.randomElement(using: &generator) { ledger.release(id) }
            }
            let written = Set(ledger.written.ranges.flatMap { $0.lowerBound..<$0.upperBound })
            #expect(written == model)
            let leased = Set(ledger.leases.flatMap { $0.range.lowerBound..<$0.range.upperBound })
            let missing = Set(ledger.missing.flatMap { $0.lowerBound..<$0.upperBound })
            #expect(missing.isDisjoint(with: written) && missing.isDisjoint(with: leased))
            #expect(missing.union(written).union(leased) == Set(0..<length))
            #expect(leased.isDisjoint(with: written))
        }
    }

    @Test("durable bytes are written bytes")
    func durable() {
        var ledger = RangeLedger(completeLength: 100, written: ByteRangeSet([ByteRange(0, 50)]))
        ledger.markDurable(ByteRangeSet([ByteRange(40, 60)]))
        #expect(ledger.durable.ranges == [ByteRange(40, 50)])
        ledger.withdraw(ByteRange(45, 50))
        #expect(ledger.durable.ranges == [ByteRange(40, 45)])
    }
}
