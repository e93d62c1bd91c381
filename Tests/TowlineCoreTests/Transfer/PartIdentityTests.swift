import Testing

@testable import TowlineCore

/// Inode numbers and birth times that change (pools of disks, FAT, containers) are a hint: a mark, durable bytes and
/// samples prove the part file.
@Suite struct PartIdentityTests {
    /// The whole table: the number, the mark, the claims, and whether samples are possible.
    @Test(arguments: PartIdentity.Mark.allCases, [false, true])
    func verdicts(_ mark: PartIdentity.Mark, _ hasSameNumber: Bool) {
        for (holdsClaims, canBeSampled) in [(false, false), (false, true), (true, false), (true, true)] {
            let identity = PartIdentity(
                hasSameNumber: hasSameNumber, mark: mark, holdsClaims: holdsClaims, canBeSampled: canBeSampled)
            let expected: PartIdentity.Verdict =
                switch (hasSameNumber, mark, holdsClaims && canBeSampled) {
                case (_, .other, _): .foreign
                case (true, _, _): .own
                case (false, .own, true), (false, .unsupported, true): .renumbered
                default: .foreign
                }
            #expect(identity.verdict == expected, "\(identity)")
        }
    }

    @Test func onlyAStrongValidatorAndALengthAllowSamples() {
        func can(_ length: Int64?, _ tag: String?) -> Bool {
            Representation(completeLength: length, entityTag: tag.flatMap { EntityTag(fieldValue: $0) }).canBeSampled
        }
        #expect(can(10, "\"a\""))
        #expect(!can(nil, "\"a\"") && !can(10, "W/\"a\"") && !can(10, nil))
    }

    // MARK: Samples

    private static func held(_ bounds: [(Int64, Int64)]) -> ByteRangeSet {
        ByteRangeSet(bounds.map { ByteRange($0.0, $0.1) })
    }

    /// Returns the held bytes that are compared or requested again.
    private static func proven(_ held: ByteRangeSet) -> ByteRangeSet {
        var kept = held
        var missing = HeldSamples.ends(in: held)
        missing.formUnion(HeldSamples.seams(of: held))
        kept.subtract(missing)
        var proven = missing
        for gap in missing.ranges {
            // The request for a gap repeats what is held before the gap.
            guard let run = gap.lowerBound == 0 ? nil : kept.range(holding: gap.lowerBound - 1) else { continue }
            proven.insert(ByteRange(max(run.lowerBound, gap.lowerBound - HeldSamples.length), gap.lowerBound))
        }
        return proven
    }

    @Test("up to a megabyte, samples cover every byte", arguments: 0..<200)
    func smallPartsAreComparedWhole(_ seed: UInt64) {
        var generator = SeededNumbers(seed: seed)
        var runs: [(Int64, Int64)] = []
        var (position, left) = (Int64(0), Int64.random(in: 1...(1 << 20), using: &generator))
        while left > 0 {
            let count = Int64.random(in: 1...left, using: &generator)
            position += Int64.random(in: 1...(1 << 22), using: &generator)
            runs.append((position, position + count))
            position += count
            left -= count
        }
        let held = Self.held(runs)
        #expect(Self.proven(held) == held, "\(runs)")
    }

    @Test("16 samples of 64 KiB are spread over a longer part")
    func longParts() {
        for length in [Int64(2 << 20), 60_000_000, 5 << 30, 1 << 50] {
            let held = Self.held([(0, length)])
            let ends = HeldSamples.ends(in: held)
            #expect(ends.count == 16)
            let proven = Self.proven(held)
            #expect(proven.count >= 16 * (HeldSamples.length - 1))
            #expect(proven.contains(ByteRange(length - HeldSamples.length, length)))
            let gaps = held.ranges.flatMap { proven.gaps(in: $0) }
            #expect(gaps.allSatisfy { $0.count <= length / 15 })
        }
        #expect(HeldSamples.ends(in: ByteRangeSet()).isEmpty)
    }

    // MARK: The transfer

    private static let whole: Int64 = 64 << 20

    private static func renumbered(_ ranges: [(Int64, Int64)]) -> HeldDownload {
        var held = HeldDownload(
            representation: Representation(completeLength: whole, entityTag: EntityTag(fieldValue: "\"a\"")),
            written: held(ranges), durable: held(ranges), isDoubtful: true)
        held.isRenumbered = true
        return held
    }

    /// Answers each request as a server that has the file, and returns the number of requests.
    private func fetch(_ script: inout TransferScript, atMost most: Int = 100) -> Int {
        for number in 0..<most {
            guard script.ending == nil, script.progress[script.last.id] != nil else { return number }
            let plan = script.last
            script.give(plan)
            script.write(plan, to: plan.lease.upperBound)
            script.end(plan, .complete(.delimited))
        }
        return most
    }

    private static func adopts(_ script: TransferScript) -> Bool { script.actions.contains(.adoptPart) }

    private static func publishes(_ script: TransferScript) -> Bool {
        script.actions.contains { if case .publish = $0 { true } else { false } }
    }

    @Test(
        "equal samples prove the part file: it continues, and the journal stores its new number",
        arguments: [false, true])
    func equalSamples(_ isWhole: Bool) throws {
        var script = try TransferScript()
        script.feed(.begin(Self.renumbered([(0, isWhole ? Self.whole : 40 << 20)])))
        #expect(script.notices(.restarted).isEmpty)
        let requests = fetch(&script)
        // The last sample is also the seam, whose request brings the rest of the file.
        #expect(requests == 16)
        #expect(script.plans.allSatisfy { $0.overlap == HeldSamples.length - 1 || $0.overlap == HeldSamples.length })
        #expect(script.plans.allSatisfy { $0.field("If-Range") == "\"a\"" })
        #expect(Self.publishes(script))
        #expect(script.notices(.restarted).isEmpty && script.prepares.isEmpty)
    }

    @Test("the part file is proven with its last sample, not before")
    func adoption() throws {
        var script = try TransferScript()
        script.feed(.begin(Self.renumbered([(0, 40 << 20)])))
        _ = fetch(&script, atMost: 15)
        #expect(!Self.adopts(script))
        script.give(script.last)
        script.write(to: 50 << 20)
        script.feed(.tick)
        #expect(Self.adopts(script))
        #expect(script.machine.ledger.written.contains(ByteRange(0, 50 << 20)))
    }

    @Test("one sample that differs restarts the download", arguments: [0, 7, 15])
    func otherBytes(_ index: Int) throws {
        var script = try TransferScript()
        script.feed(.begin(Self.renumbered([(0, Self.whole)])))
        _ = fetch(&script, atMost: index)
        script.give(script.last)
        script.end(.overlapDiffers)
        #expect(script.notices(.restarted).count == 1)
        #expect(!Self.adopts(script) && !Self.publishes(script))
        #expect(script.machine.ledger.written.isEmpty)
    }

    @Test("a server without ranges, or with another version, has a new part file")
    func noSamples() throws {
        for fields in [[("ETag", "\"a\"")], [("ETag", "\"b\"")], []] {
            var script = try TransferScript()
            script.feed(.begin(Self.renumbered([(0, 40 << 20)])))
            for _ in 0..<8 where script.prepares.isEmpty {
                script.answer(200, fields + [("Content-Length", "\(Self.whole)")])
                script.endCancelled()
                script.now += .seconds(10)
                script.feed(.tick)
            }
            #expect(script.prepares.allSatisfy(\.isReplacement) && !script.prepares.isEmpty)
            #expect(!Self.adopts(script) && !Self.publishes(script))
        }
    }

    /// The journal may have the same origin as the bytes, so its checksum proves nothing.
    @Test func theJournalsChecksumDoesNotReplaceSamples() throws {
        var held = Self.renumbered([(0, Self.whole)])
        held.checksums = [try #require(Checksum(algorithm: .sha256, value: Array(repeating: 2, count: 32)))]
        var script = try TransferScript()
        script.feed(.begin(held))
        #expect(script.plans.count == 1 && !script.actions.contains { if case .verify = $0 { true } else { false } })
        #expect(fetch(&script) == 16)
    }
}

/// A generator with a seed, so that a failure can be repeated.
private struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}
