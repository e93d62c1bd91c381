import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests journals that this program did not write: correct checksums, impossible or extreme numbers. Each counts as
/// damaged or is used, and never ends the process.
@Suite struct HostileJournalTests {
    private let directory = ScratchDirectory()
    private let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))
    private static let metadata = 4096
    private static let marks = 69_632

    private static let edges: [Int64] = [
        .min, .min + 1, -1, 0, 1, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1, 1 << 32, 1 << 40,
        (1 << 62) - 1, 1 << 62, .max - 1, .max,
    ]

    /// Creates a download of 4 MiB, changes its journal, and uses the journal as a run does.
    private func run(_ change: (inout [UInt8]) -> Void) async throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<1000)
        try await part.journal?.checkpoint(part.sink)
        part.sink.close()
        var bytes = try #require(directory["file.tow-journal"])
        change(&bytes)
        directory["file.tow-journal"] = bytes
        defer { for name in directory.names { remove(directory.path + "/" + name) } }
        // A journal of a newer version is an error.
        guard let survey = try? storage.survey(directory.place()) else { return }
        if case .unfinished(let part) = survey {
            if let journal = part.journal {
                var record = journal.record
                record.resolved += "x"
                try journal.update(record)
                if let slot = try journal.claimSlot(at: 1000) { journal.release(slot) }
                try journal.withdraw(ByteRange(10, 20))
                try await journal.checkpoint(part.sink)
                #expect(part.claims.ranges.allSatisfy { $0.upperBound <= 4 << 20 })
            }
            part.sink.close()
        }
    }

    /// Recomputes the CRC-32C of a metadata block.
    private func seal(_ bytes: inout [UInt8]) {
        let length = Int(bytes.load(UInt32.self, at: Self.metadata))
        bytes.store(UInt32(0), at: Self.metadata + 4)
        bytes.store(
            CRC32C.checksum(bytes[Self.metadata..<min(bytes.count, Self.metadata + 24 + length)]), at: Self.metadata + 4
        )
    }

    /// Returns the position of the value of a field; `nil` if the field is missing.
    private func position(of tag: UInt16, in bytes: [UInt8]) -> Int? {
        var at = Self.metadata + 24
        let end = at + Int(bytes.load(UInt32.self, at: Self.metadata))
        while at + 6 <= end {
            if bytes.load(UInt16.self, at: at) == tag { return at + 6 }
            at += 6 + Int(bytes.load(UInt32.self, at: at + 2))
        }
        return nil
    }

    /// Length, dates, generation, and the four numbers of the part file's identity.
    @Test(arguments: [(4, 0), (6, 0), (7, 0), (9, 0), (10, 0), (10, 8), (10, 16)] as [(UInt16, Int)])
    func numbersAtTheEdge(_ tag: UInt16, _ offset: Int) async throws {
        for edge in Self.edges {
            try await run { bytes in
                guard let at = position(of: tag, in: bytes) else { return }
                bytes.store(edge, at: at + offset)
                seal(&bytes)
            }
        }
    }

    @Test func sequenceNumbersAtTheEdge() async throws {
        for edge in Self.edges {
            try await run { bytes in
                bytes.store(edge, at: Self.metadata + 8)
                seal(&bytes)
            }
        }
    }

    @Test func marksAtTheEdge() async throws {
        for (start, end) in Self.edges.flatMap({ start in Self.edges.map { (start, $0) } }) {
            try await run { bytes in
                for record in [Self.marks, Self.marks + 64] {
                    bytes.store(start, at: record)
                    bytes.store(end, at: record + 8)
                    bytes.store(CRC32C.checksum(bytes[record..<record + 60]), at: record + 60)
                }
            }
        }
    }

    @Test func sectionsAtTheEdge() async throws {
        for (field, edge) in (0..<4).flatMap({ field in Self.edges.map { (field, $0) } }) {
            try await run { bytes in
                bytes.store(edge, at: 32 + (field / 2) * 24 + 8 + (field % 2) * 8)
                bytes.store(CRC32C.checksum(bytes[..<508]), at: 508)
            }
        }
    }

    /// Random bytes in metadata and header, with correct checksums. `TOWLINE_TORTURE` runs twenty times as many.
    @Test func randomBytes() async throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<(getenv("TOWLINE_TORTURE") == nil ? 500 : 10_000) {
            try await run { bytes in
                let length = Int(bytes.load(UInt32.self, at: Self.metadata))
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    let isHeader = Int.random(in: 0..<8, using: &random) == 0
                    let at =
                        isHeader
                        ? Int.random(in: 12..<80, using: &random)
                        : Self.metadata + Int.random(in: 0..<24 + length, using: &random)
                    bytes[at] = .random(in: 0...255, using: &random)
                }
                bytes.store(UInt32(min(32_744, bytes.load(UInt32.self, at: Self.metadata))), at: Self.metadata)
                seal(&bytes)
                bytes.store(CRC32C.checksum(bytes[..<508]), at: 508)
            }
        }
    }
}
