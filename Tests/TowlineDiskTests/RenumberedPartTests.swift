import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Part files whose inode number is not the one in the journal: after a mount of a pool of disks or of FAT, and copies.
@Suite struct RenumberedPartTests {
    /// The state of the part file's mark (an extended attribute) in the new file.
    enum Mark: CaseIterable { case kept, absent, other, unsupported }

    private static let durable = ByteRange(0, 1 << 20)
    private static let written = ByteRange(2 << 20, 3 << 20)
    private static let length: Int64 = 4 << 20

    let directory = ScratchDirectory()
    let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))

    private func record(strong: Bool = true, lacksRanges: Bool = false) -> DownloadRecord {
        var record = DownloadRecord.sample(length: Self.length)
        record.representation.entityTag = EntityTag(fieldValue: strong ? "\"a\"" : "W/\"a\"")
        record.representation.lastModified = nil
        record.lacksRanges = lacksRanges
        return record
    }

    /// Makes an interrupted download with one durable range, and one that is written only.
    private func interrupt(_ record: DownloadRecord) async throws {
        let part = try storage.create(directory.place(), record: record, terms: CreateTerms(journaled: true))
        try part.fill(Int(Self.durable.lowerBound)..<Int(Self.durable.upperBound))
        try await part.journal?.checkpoint(part.sink)
        try part.fill(Int(Self.written.lowerBound)..<Int(Self.written.upperBound))
        part.sink.close()
    }

    /// Replaces the part file by a copy, which has another inode number.
    ///
    /// - Parameter hole: a range that the copy lacks.
    private func renumber(_ mark: Mark, hole: Range<Int>? = nil) throws {
        let path = directory.path + "/file.tow"
        let system = SystemCalls()
        var attribute = [UInt8](repeating: 0, count: 64)
        let old = open(path, O_RDONLY)
        let count = attribute.withUnsafeMutableBytes { system.getAttribute(old, "user.towline", $0) }
        #expect(count == 16, "the part file has a mark")
        let bytes = try #require(directory["file.tow"])
        let copy = open(path + "-copy", O_RDWR | O_CREAT, 0o600)
        for run in hole.map({ [0..<$0.lowerBound, $0.upperBound..<bytes.count] }) ?? [0..<bytes.count] {
            #expect(pwrite(copy, Array(bytes[run]), run.count, Int(run.lowerBound)) == run.count)
        }
        if mark == .other { attribute[8] ^= 1 }
        if mark == .kept || mark == .other {
            let code = attribute.prefix(max(0, count)).withUnsafeBytes {
                system.setAttribute(copy, "user.towline", $0)
            }
            #expect(code == 0)
        }
        // The old file stays open until here, so that its number is not used again.
        #expect(rename(path + "-copy", path) == 0)
        close(copy)
        close(old)
    }

    /// A storage as after a mount: without attributes if the mark is `unsupported`.
    private func mounted(_ mark: Mark) -> FileStorage {
        FileStorage(
            syscall: FaultySyscall { call, _ in
                mark == .unsupported && (call == .getAttribute || call == .setAttribute) ? .error(ENOTSUP) : nil
            }, boot: BootIdentity(high: 1, low: 1))
    }

    @Test("only durable bytes count, with the journal's mark or without attributes", arguments: Mark.allCases)
    func durableBytesCount(_ mark: Mark) async throws {
        try await interrupt(record())
        try renumber(mark)
        let survey = try mounted(mark).survey(directory.place(), for: nil, allowsCopies: false)
        switch (survey, mark) {
        case (.unfinished(let part), .kept), (.unfinished(let part), .unsupported):
            #expect(part.isRenumbered && part.isDoubtful)
            #expect(part.claims == ByteRangeSet([Self.durable]))
            #expect(part.journal?.written == part.claims && part.notices.isEmpty)
            part.sink.close()
        case (.nothing(let notices), .absent), (.nothing(let notices), .other):
            #expect(notices.contains { $0.contains("copied or replaced") })
            #expect(directory.names == ["file.tow-aside"])
        default: Issue.record("\(mark): \(survey)")
        }
    }

    @Test("a hole in a durable range, a weak validator, or no ranges: the file is set aside", arguments: 0..<4)
    func reasonsAgainst(_ reason: Int) async throws {
        try await interrupt(record(strong: reason != 1, lacksRanges: reason == 2))
        try renumber(.kept, hole: reason == 0 ? 262_144..<524_288 : nil)
        if reason == 3 { truncate(directory.path + "/file.tow", 1 << 19) }
        guard case .nothing = try storage.survey(directory.place(), for: nil, allowsCopies: false) else {
            Issue.record("the file counts")
            return
        }
        #expect(directory.names == ["file.tow-aside"])
    }

    @Test("a hole in a range that is not durable is no reason")
    func holeElsewhere() async throws {
        try await interrupt(record())
        try renumber(.kept, hole: Int(Self.written.lowerBound)..<Int(Self.written.upperBound))
        guard case .unfinished(let part) = try storage.survey(directory.place(), for: nil, allowsCopies: false) else {
            Issue.record("the file does not count")
            return
        }
        #expect(part.claims == ByteRangeSet([Self.durable]))
        part.sink.close()
    }

    @Test("the same number with another mark is another file")
    func reusedNumber() async throws {
        try await interrupt(record())
        let file = open(directory.path + "/file.tow", O_RDWR)
        var attribute: [UInt8] = []
        attribute.append(number: UInt64(6))
        attribute.append(number: UInt64(1))
        #expect(attribute.withUnsafeBytes { SystemCalls().setAttribute(file, "user.towline", $0) } == 0)
        close(file)
        guard case .nothing = try storage.survey(directory.place(), for: nil, allowsCopies: false) else {
            Issue.record("the file counts")
            return
        }
    }

    @Test("a proven file counts as the journal's own in the next run, with its written bytes")
    func adoption() async throws {
        try await interrupt(record())
        try renumber(.kept)
        guard case .unfinished(let part) = try storage.survey(directory.place(), for: nil, allowsCopies: false) else {
            Issue.record("the file does not count")
            return
        }
        try part.journal?.adoptPart(part.sink)
        try part.fill(Int(Self.written.lowerBound)..<Int(Self.written.upperBound))
        part.sink.close()
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(!again.isDoubtful && !again.isRenumbered)
        #expect(again.claims == ByteRangeSet([Self.durable, Self.written]))
        again.sink.close()
    }

    @Test(
        "a cancelled download removes its renumbered part file; a copy without the mark stays", arguments: Mark.allCases
    )
    func removal(_ mark: Mark) async throws {
        try await interrupt(record())
        try renumber(mark)
        try mounted(mark).discard(directory.place(), from: [record().source])
        #expect(directory.names == (mark == .kept ? [] : ["file.tow"]))
    }

    @Test("a part file of an older version gets its mark when it is resumed")
    func olderVersion() async throws {
        let old = FileStorage(
            syscall: FaultySyscall { call, _ in call == .setAttribute ? .error(ENOSPC) : nil },
            boot: BootIdentity(high: 1, low: 1))
        let part = try old.create(directory.place(), record: record(), terms: CreateTerms(journaled: true))
        try part.fill(0..<(1 << 20))
        part.sink.close()
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(!again.isDoubtful)
        try await again.journal?.checkpoint(again.sink)
        again.sink.close()
        try renumber(.kept)
        guard case .unfinished(let later) = try storage.survey(directory.place(), for: nil, allowsCopies: false) else {
            Issue.record("the file does not count")
            return
        }
        #expect(later.isRenumbered)
        later.sink.close()
    }
}
