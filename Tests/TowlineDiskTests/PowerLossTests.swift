import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Replays logs of complete downloads up to any point, drops, keeps and tears the writes that no sync covered, and
/// inspects the result as the next run would.
@Suite struct PowerLossTests {
    /// The number of states; larger if `TOWLINE_TORTURE` is set.
    private static let states = getenv("TOWLINE_TORTURE") == nil ? 2_000 : 12_000

    @Test func noStateHoldsAFalseClaim() async throws {
        var tally = Tally()
        var seed: UInt64 = 1
        while tally.states < PowerLossTests.states {
            try await explore(seed: seed, ignored: nil, statesPerLog: 60, &tally)
            seed += 1
        }
        print("power loss: \(tally.states) states of \(seed - 1) logs, \(tally.violations.count) violations")
        print("  \(tally.outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
        #expect(tally.violations.isEmpty, "\(tally.violations.prefix(5))")
        #expect(tally.outcomes["unfinished", default: 0] > tally.states / 4)
        #expect(tally.outcomes["finished", default: 0] > 0)
        #expect(tally.outcomes["earlier", default: 0] > 0)
    }

    /// Proves that the checker works: without any one of the syncs it finds a state that breaks a promise.
    @Test(arguments: SimulatedDisk.SyncKind.journaled)
    func eachSyncIsNeeded(_ kind: SimulatedDisk.SyncKind) async throws {
        var tally = Tally()
        var seed: UInt64 = 1
        while tally.violations.isEmpty, tally.states < 20_000 {
            try await explore(seed: seed, ignored: kind, statesPerLog: 60, &tally)
            seed += 1
        }
        print("without \(kind): \(tally.violations.first ?? "no violation") after \(tally.states) states")
        #expect(!tally.violations.isEmpty)
    }

    /// A small file is complete under its name, or does not exist; once it was reported as published, it exists.
    @Test func smallFilesAreWholeOrNotThere() async throws {
        var tally = Tally()
        var seed: UInt64 = 1
        while tally.states < PowerLossTests.states {
            try await exploreSmall(seed: seed, ignored: nil, statesPerLog: 20, &tally)
            seed += 1
        }
        #expect(tally.violations.isEmpty, "\(tally.violations.prefix(5))")
        #expect(tally.outcomes["finished", default: 0] > tally.states / 10)
        #expect(tally.outcomes["nothing", default: 0] > tally.states / 10)
    }

    @Test(arguments: SimulatedDisk.SyncKind.small)
    func eachSyncOfASmallFileIsNeeded(_ kind: SimulatedDisk.SyncKind) async throws {
        var tally = Tally()
        var seed: UInt64 = 1
        while tally.violations.isEmpty, tally.states < 20_000 {
            try await exploreSmall(seed: seed, ignored: kind, statesPerLog: 20, &tally)
            seed += 1
        }
        #expect(!tally.violations.isEmpty)
    }

    /// A survey omits the sync of a directory only if no name in it changed since the last one.
    @Test(arguments: UInt64(1)...50) func aNameThatChangedAfterASyncIsDurableOnceReported(_ seed: UInt64) async throws {
        let disk = SimulatedDisk(type: 0xEF53)
        let storage = FileStorage(syscall: disk, boot: Script.boot)
        let first = Place(directory: SimulatedDisk.directory, name: "first")
        let small = try SmallFile(
            body: SomeBytes(Script.contents[1]), source: Script.record(generation: 1).source, modified: 1_700_000_000,
            durable: true)
        _ = try await storage.publishAtOnce(small, at: first)
        func survey(_ place: Place) throws -> Int {
            guard case .finished = try storage.survey(place) else { throw TowlineError(.diskFailure, "not finished") }
            return disk.log.count { if case .syncDirectory = $0 { true } else { false } }
        }
        let syncs = try survey(first)
        #expect(try survey(first) == syncs)
        // Another process renames the file, and ends.
        let folder = disk.openat(AT_FDCWD, SimulatedDisk.directory, O_RDONLY, 0)
        #expect(disk.rename(folder, "first", Script.name, keeps: true) == 0)
        #expect(try survey(Script.place) == syncs + 1)
        var generator = SeededGenerator(seed: seed)
        let later = PowerLoss.strike(disk, after: disk.log.count, log: disk.log, &generator)
        #expect(later[Script.name] == Script.contents[1])
    }

    /// Explores one or two small files; the second replaces the first.
    private func exploreSmall(
        seed: UInt64, ignored: SimulatedDisk.SyncKind?, statesPerLog: Int, _ tally: inout Tally
    ) async throws {
        var generator = SeededGenerator(seed: seed &* 1_000_003)
        let disk = SimulatedDisk(ignored: ignored, type: 0xEF53)
        let storage = FileStorage(syscall: disk, boot: Script.boot)
        // Both begin before the name exists; the second may have a name of its own from the beginning.
        let hasName = generator.chance(50)
        var parts: [OpenPart] = []
        let atOnce = generator.chance(30)
        if atOnce {
            disk.note(.publishing(generation: 1))
            let small = try SmallFile(
                body: SomeBytes(Script.contents[1]), source: Script.record(generation: 1).source,
                modified: 1_700_000_000, durable: true)
            let file = PublishedFile(path: Script.place.path, length: Script.length)
            #expect(try await storage.publishAtOnce(small, at: Script.place) == .published(file))
            disk.note(.published(generation: 1))
        }
        for generation in 1...UInt32(generator.chance(50) ? 2 : 1) where !atOnce {
            let part = try storage.create(
                Script.place, record: Script.record(generation: generation),
                terms: CreateTerms(journaled: false, requiresFreeName: generation == 1 || !hasName, isAtHand: true))
            let content = Script.contents[Int(generation)]
            let middle = Int.random(in: 1..<content.count, using: &generator)
            try content[..<middle].withUnsafeBytes { try part.sink.write($0, at: 0) }
            try content[middle...].withUnsafeBytes { try part.sink.write($0, at: Int64(middle)) }
            parts.append(part)
        }
        #expect(atOnce || disk.image.names.isEmpty == (parts.count == 1 || !hasName))
        for (generation, part) in zip(UInt32(1)..., parts) {
            disk.note(.publishing(generation: generation))
            _ = try await part.sink.publish(
                PublishTerms(
                    existing: generation == 1 ? .fail : .overwrite, durable: true, length: Script.length,
                    modified: 1_700_000_000))
            disk.note(.published(generation: generation))
        }
        for _ in 0..<statesPerLog {
            let state = await strike(disk, boot: Script.boot, seed: seed, &generator, &tally)
            guard state.isKill, state.found == "finished" else { continue }
            // After the kill, a survey reports the file as finished, although no run did. Now the power fails.
            let second = SimulatedDisk(
                state.image, type: 0xEF53, log: Array(disk.log.prefix(state.count)), base: disk.base)
            guard case .finished = try FileStorage(syscall: second, boot: Script.boot).survey(Script.place) else {
                Issue.record("finished, and not")
                continue
            }
            let later = PowerLoss.strike(second, after: second.log.count, log: second.log, &generator)
            if Script.generation(of: later[Script.name]) == nil {
                tally.violations.append("seed \(seed), event \(state.count): called finished, and lost")
            }
        }
    }

    /// Checks one state after a kill or a power loss, as the next run would see it.
    private func strike(
        _ disk: SimulatedDisk, boot: BootIdentity, seed: UInt64, _ generator: inout SeededGenerator,
        _ tally: inout Tally
    ) async -> (count: Int, isKill: Bool, image: DiskImage, found: String) {
        let log = disk.log
        let count = Int.random(in: 0...log.count, using: &generator)
        let isKill = generator.chance(15)
        let image =
            isKill
            ? PowerLoss.kill(disk, after: count, log: log) : PowerLoss.strike(disk, after: count, log: log, &generator)
        var checker = Checker(image: image, events: log.prefix(count), base: disk.base)
        let found = await checker.check(boot: isKill ? boot : BootIdentity(high: 2, low: 2))
        tally.outcomes[found, default: 0] += 1
        tally.violations += checker.violations.map { "seed \(seed), event \(count), kill \(isKill): \($0)" }
        tally.states += 1
        return (count, isKill, image, found)
    }

    private struct Tally {
        var states = 0
        var violations: [String] = []
        var outcomes: [String: Int] = [:]
    }

    private func explore(
        seed: UInt64, ignored: SimulatedDisk.SyncKind?, statesPerLog: Int, _ tally: inout Tally
    ) async throws {
        var generator = SeededGenerator(seed: seed &* 1_000_003)
        var base = DiskImage()
        if generator.chance(30) { base.add(Script.name, Script.contents[0]) }
        var disk = SimulatedDisk(base, ignored: ignored)
        var boot = Script.boot
        var script = Script(disk, seed: seed)
        script.exchangesFiles = ignored == .retiredJournal || generator.chance(20)
        try await script.run(steps: Int.random(in: 5...60, using: &generator))
        let first = Int.random(in: 0...disk.log.count, using: &generator)
        if generator.chance(25), !Checker(image: base, events: disk.log.prefix(first), base: base).isSpoiled {
            // The second run resumes from the disk that the first power loss left.
            base = PowerLoss.strike(disk, after: first, log: disk.log, &generator)
            disk = SimulatedDisk(base, ignored: ignored)
            boot = BootIdentity(high: 3, low: 3)
            var next = Script(disk, seed: seed &+ 1_000_000, boot: boot)
            try await next.run(steps: Int.random(in: 1...30, using: &generator))
        }
        for _ in 0..<statesPerLog { _ = await strike(disk, boot: boot, seed: seed, &generator, &tally) }
    }
}

/// Checks one disk after a crash.
private struct Checker {
    let image: DiskImage
    private(set) var violations: [String] = []
    private var promised = ByteRangeSet()
    /// The generation and the promised bytes of the earlier part file; `nil` without one.
    private var earlier: (generation: UInt32, promised: ByteRangeSet)?
    private var spoiled = ByteRangeSet()
    /// Generations whose contents may be under the final name, the file that existed before included.
    private var allowed: Set<UInt32> = []
    private var publishedLast: UInt32?

    init(image: DiskImage, events: ArraySlice<DiskEvent>, base: DiskImage) {
        self.image = image
        if let generation = Script.generation(of: base[Script.name]) {
            allowed.insert(generation)
            publishedLast = generation
        }
        for case .note(let note) in events {
            switch note {
            case .durable(let ranges): promised = ranges
            case .spoiling(let range):
                spoiled.insert(range)
                promised.remove(range)
            case .withdrawing(let range): promised.remove(range)
            case .withdrawn(let range): spoiled.remove(range)
            case .abandoning:
                promised = ByteRangeSet()
                spoiled = ByteRangeSet()
            case .keeping(let generation):
                earlier = (generation, promised)
                promised = ByteRangeSet()
            case .removingEarlier: earlier = nil
            case .restored:
                promised = earlier?.promised ?? ByteRangeSet()
                earlier = nil
            case .publishing(let generation):
                allowed.insert(generation)
                promised = ByteRangeSet()
            case .published(let generation):
                publishedLast = generation
                spoiled = ByteRangeSet()
            }
        }
    }

    /// Returns whether the journal claims bytes that the script made wrong and has not withdrawn yet.
    var isSpoiled: Bool { !spoiled.isEmpty }

    /// - Returns: The result of the survey, as a word.
    mutating func check(boot: BootIdentity) async -> String {
        checkFinalName(image[Script.name], "under the final name")
        let disk = SimulatedDisk(image)
        let storage = FileStorage(syscall: disk, boot: boot)
        do {
            switch try storage.survey(Script.place) {
            case .nothing:
                checkLoss()
                return "nothing"
            case .occupied:
                checkLoss()
                return "occupied"
            case .finished(let file, _):
                if file.path != Script.place.path { violations.append("finished as \(file.path)") }
                checkFinalName(disk.image[Script.name], "called finished")
                return "finished"
            case .unfinished(let part):
                let isEarlier = restoreEarlier(part)
                try checkClaims(part)
                storage.removeEarlier(Script.place)
                try await finish(part, disk)
                return isEarlier ? "earlier" : part.claims.isEmpty ? "unfinished, no claims" : "unfinished"
            }
        } catch {
            violations.append("error: \(error)")
            return "error"
        }
    }

    private mutating func checkLoss() {
        for promised in [promised, earlier?.promised ?? ByteRangeSet()] where !promised.isEmpty {
            violations.append("promised \(promised.ranges) is lost")
        }
    }

    /// Expects the promised bytes of the earlier part file in the present one or beside it. Returns whether it has
    /// become the present one, because the new one has no promised bytes.
    private mutating func restoreEarlier(_ part: OpenPart) -> Bool {
        guard let (generation, kept) = earlier else { return false }
        if part.journal?.record.generation == generation, promised.isEmpty {
            (promised, earlier) = (kept, nil)
            return true
        }
        if !kept.isEmpty, part.earlier == nil { violations.append("promised \(kept.ranges) is not kept") }
        return false
    }

    private mutating func checkFinalName(_ bytes: [UInt8]?, _ what: String) {
        guard let bytes else {
            if let publishedLast { violations.append("\(what): published \(publishedLast) is lost") }
            return
        }
        guard let generation = Script.generation(of: bytes), allowed.contains(generation) else {
            violations.append("\(what): not whole")
            return
        }
        if let publishedLast, generation < publishedLast { violations.append("\(what): \(generation) is back") }
    }

    private mutating func checkClaims(_ part: OpenPart) throws {
        guard let journal = part.journal else { return }
        let generation = Int(journal.record.generation)
        var honest = part.claims
        honest.subtract(spoiled)
        for range in honest.ranges {
            var bytes = [UInt8](repeating: 0, count: Int(range.count))
            let count = try bytes.withUnsafeMutableBytes { try part.sink.read(into: $0, at: range.lowerBound) }
            let expected = Script.contents[generation][Int(range.lowerBound)..<Int(range.upperBound)]
            if count != bytes.count || bytes != Array(expected) {
                violations.append("false claim \(range) of generation \(generation)")
            }
        }
        for range in promised.ranges where !part.claims.contains(range) {
            violations.append("promised \(range) is not claimed")
        }
        if journal.written != part.claims { violations.append("journal and claims differ") }
    }

    /// Completes the download and checks that the published bytes are those of the file.
    private mutating func finish(_ part: OpenPart, _ disk: SimulatedDisk) async throws {
        guard let journal = part.journal, spoiled.isEmpty else { return }
        let generation = journal.record.generation
        let content = Script.contents[Int(generation)]
        for gap in part.claims.gaps(in: ByteRange(0, Script.length)) {
            let slot = try journal.claimSlot(at: gap.lowerBound)
            try Array(content[Int(gap.lowerBound)..<Int(gap.upperBound)]).withUnsafeBytes {
                try part.sink.write($0, at: gap.lowerBound)
            }
            try slot?.mark(upTo: gap.upperBound)
        }
        try await journal.checkpoint(part.sink)
        _ = try await part.sink.publish(
            PublishTerms(existing: .overwrite, durable: true, length: Script.length, modified: nil))
        if disk.image[Script.name] != content { violations.append("finished generation \(generation) is not whole") }
        let left = disk.image.names.keys.filter { name in
            // A new journal that lost its first bytes may be the file of another program.
            let isBlank = disk.image[name]?.prefix(8).allSatisfy { $0 == 0 } ?? false
            return name.hasPrefix("file.tow") && !name.hasPrefix("file.tow-bad")
                && !(name == "file.tow-journal-new" && isBlank)
        }
        if !left.filter({ !$0.contains("aside") }).isEmpty { violations.append("left behind: \(left.sorted())") }
    }
}
