import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// A note for the checker about a promise of the script, in the order of the log.
enum ScriptNote: Sendable {
    /// A checkpoint returned: these bytes are promised to survive.
    case durable(ByteRangeSet)
    /// The script is about to write bytes there that differ from the generation's.
    case spoiling(ByteRange)
    /// `withdraw` begins: the promise for that range has ended.
    case withdrawing(ByteRange)
    /// `withdraw` returned: the journal must not claim the bytes from here on.
    case withdrawn(ByteRange)
    /// The promises of the present generation end: a new one begins, or the download is discarded.
    case abandoning
    /// A new generation begins, and this one becomes the earlier part file: its promises stay.
    case keeping(generation: UInt32)
    /// The promises of the earlier part file end.
    case removingEarlier
    /// The earlier part file has become the present one again.
    case restored
    /// The content may appear under the final name from here on.
    case publishing(generation: UInt32)
    /// The content is promised to be under the final name.
    case published(generation: UInt32)
}

/// Downloads a small file step by step, with every event that may happen, in an order that a seed determines.
struct Script {
    static let name = "file"
    static let length: Int64 = 64 * 1024
    static let place = Place(directory: SimulatedDisk.directory, name: name)
    static let boot = BootIdentity(high: 1, low: 1)

    /// The bytes of each generation; no two agree anywhere, and none is zero.
    static let contents: [[UInt8]] = (0..<16).map { generation in
        var generator = SeededGenerator(seed: 77)
        return (0..<Int(length)).map { _ in
            UInt8(truncatingIfNeeded: (generator.next() % 15) * 16 + UInt64(generation) + 1)
        }
    }

    static func record(generation: UInt32) -> DownloadRecord {
        DownloadRecord(
            source: "http://example.test/file",
            // The URL is long enough that a block of metadata fills several sectors, and can be torn.
            resolved: "http://example.test/" + String(repeating: "f", count: 1500), name: name,
            representation: Representation(
                completeLength: length, entityTag: EntityTag(fieldValue: "\"\(generation)\"")), checksums: [],
            generation: generation)
    }

    let disk: SimulatedDisk
    var generator: SeededGenerator
    private var storage: FileStorage
    private var part: OpenPart?
    private var generation: UInt32
    /// The generation of the earlier part file; `nil` without one.
    private var earlier: UInt32?
    private var slots: [(slot: any JournalSlot, position: Int64)] = []

    private let boot: BootIdentity
    /// `true` to replace part files and discard downloads more often.
    var exchangesFiles = false

    init(_ disk: SimulatedDisk, seed: UInt64, boot: BootIdentity = Script.boot) {
        self.disk = disk
        self.boot = boot
        generator = SeededGenerator(seed: seed)
        generation = min(15, 1 + (Script.generation(of: disk.image[Script.name]) ?? 0))
        storage = FileStorage(syscall: disk, boot: boot)
    }

    /// Returns the generation with these contents; `nil` if there is no such generation.
    static func generation(of bytes: [UInt8]?) -> UInt32? {
        bytes.flatMap { contents.firstIndex(of: $0) }.map { UInt32($0) }
    }

    /// Takes `steps` steps, and then, by chance, completes the download.
    mutating func run(steps: Int) async throws {
        try open()
        for _ in 0..<steps { try await step() }
        if generator.chance(60) { try await publish() }
    }

    private mutating func step() async throws {
        let roll = Int.random(in: 0..<100, using: &generator)
        switch exchangesFiles && roll % 4 == 0 ? (roll % 8 == 0 ? 80 : 95) : roll {
        case 0..<45: try writeSome()
        case 45..<63: try await checkpoint()
        case 63..<70: try spoilAndWithdraw()
        case 70..<78: try restart()
        case 78..<84: try replace()
        case 84..<88: try update()
        case 88..<90: removeEarlier()
        case 90..<94: slots = slots.filter { part?.journal?.release($0.slot) == nil }
        case 94..<96: try giveUp()
        case 96..<98: try await publish()
        default: try setAside()
        }
    }

    private mutating func open() throws {
        switch try storage.survey(Script.place) {
        case .unfinished(let found):
            part = found
            generation = found.journal?.record.generation ?? 1
            if generation == earlier {
                earlier = nil
                disk.note(.restored)
            }
        case .nothing, .occupied, .finished:
            part = try storage.create(
                Script.place, record: Script.record(generation: generation), terms: CreateTerms(journaled: true))
        }
        slots = []
    }

    private func write(_ range: ByteRange, spoiled: Bool = false) throws {
        var bytes = Array(Script.contents[Int(generation)][Int(range.lowerBound)..<Int(range.upperBound)])
        if spoiled { bytes = bytes.map { ~$0 } }
        try bytes.withUnsafeBytes { try part?.sink.write($0, at: range.lowerBound) }
    }

    private mutating func writeSome() throws {
        guard let part, let journal = part.journal else { return }
        if slots.count < 4 {
            let missing = journal.written.gaps(in: ByteRange(0, Script.length))
            if let gap = missing.randomElement(using: &generator) {
                let start =
                    generator.chance(50)
                    ? gap.lowerBound
                    : Int64.random(
                        in: gap.lowerBound..<gap.upperBound, using: &generator)
                if let slot = try journal.claimSlot(at: start) { slots.append((slot, start)) }
            }
        }
        guard let index = slots.indices.randomElement(using: &generator) else { return }
        let start = slots[index].position
        let end = min(Script.length, start + Int64.random(in: 1...6000, using: &generator))
        guard start < end else {
            journal.release(slots.remove(at: index).slot)
            return
        }
        try write(ByteRange(start, end))
        try slots[index].slot.mark(upTo: end)
        slots[index].position = end
    }

    private func checkpoint() async throws {
        guard let part, let journal = part.journal else { return }
        try await journal.checkpoint(part.sink)
        disk.note(.durable(journal.durable))
    }

    private mutating func spoilAndWithdraw() throws {
        guard let journal = part?.journal, let run = journal.written.ranges.randomElement(using: &generator),
            run.count > 2
        else { return }
        let start = Int64.random(in: run.lowerBound..<(run.upperBound - 1), using: &generator)
        let range = ByteRange(start, Int64.random(in: (start + 1)...run.upperBound, using: &generator))
        // Leases are released first, as an engine does when it stops attempts that it no longer trusts.
        for slot in slots { journal.release(slot.slot) }
        slots = []
        disk.note(.spoiling(range))
        try write(range, spoiled: true)
        disk.note(.withdrawing(range))
        try journal.withdraw(range)
        disk.note(.withdrawn(range))
    }

    private mutating func restart() throws {
        disk.killProcess()
        storage = FileStorage(syscall: disk, boot: boot)
        part = nil
        try open()
    }

    private mutating func replace() throws {
        guard let old = part, generation < 15 else { return }
        var terms = CreateTerms(journaled: true)
        terms.keepsReplaced = generator.chance(60)
        if terms.keepsReplaced { earlier = generation }
        disk.note(terms.keepsReplaced ? .keeping(generation: generation) : .abandoning)
        generation += 1
        part = try storage.replace(
            old, place: Script.place, record: Script.record(generation: generation), terms: terms)
        slots = []
    }

    private mutating func removeEarlier() {
        disk.note(.removingEarlier)
        storage.removeEarlier(Script.place)
        earlier = nil
    }

    private func update() throws {
        guard let journal = part?.journal else { return }
        var record = journal.record
        record.resolved += "x"
        try journal.update(record)
    }

    private mutating func giveUp() throws {
        disk.note(.abandoning)
        part?.sink.discard()
        if generation < 15 { generation += 1 }
        try open()
    }

    private mutating func setAside() throws {
        disk.note(.abandoning)
        try part?.sink.setAside()
        if generation < 15 { generation += 1 }
        try open()
    }

    private mutating func publish() async throws {
        guard let part, let journal = part.journal else { return }
        for slot in slots { journal.release(slot.slot) }
        slots = []
        for gap in journal.written.gaps(in: ByteRange(0, Script.length)) {
            guard let slot = try journal.claimSlot(at: gap.lowerBound) else { return }
            try write(gap)
            try slot.mark(upTo: gap.upperBound)
            journal.release(slot)
        }
        if generator.chance(30) { try await checkpoint() }
        removeEarlier()
        disk.note(.publishing(generation: generation))
        _ = try await part.sink.publish(
            PublishTerms(existing: .overwrite, durable: true, length: Script.length, modified: 1_700_000_000))
        disk.note(.published(generation: generation))
        if generation < 15 { generation += 1 }
        try open()
    }
}
