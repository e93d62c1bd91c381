import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests finished files and files of other programs under the names that a download needs: none loses a byte.
@Suite struct ForeignFileTests {
    private let directory = ScratchDirectory()
    private let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))
    private static let suffixes = [".tow", ".tow-journal", ".tow-journal-new", ".tow-next", ".tow-bad", ".tow-aside"]

    /// Downloads a file to the end, as the engine does: survey, create, write, publish.
    private func download(_ name: String, length: Int, journaled: Bool, _ existing: ExistingPolicy = .fail) async throws
    {
        let place = directory.place(name)
        guard case .nothing = try storage.survey(place) else {
            if existing == .fail { Issue.record("\(name) is not free") }
            return
        }
        let part = try storage.make(place, length: Int64(length), journaled: journaled)
        try part.fill(0..<length)
        _ = try await part.sink.publish(
            PublishTerms(existing: existing, durable: true, length: Int64(length), modified: nil))
    }

    /// A finished file keeps its bytes and its name, and is still known as finished.
    @Test(arguments: suffixes, [(false, false), (false, true), (true, false), (true, true)])
    func aFinishedFileKeepsItsName(_ suffix: String, _ journaled: (own: Bool, other: Bool)) async throws {
        try await download("file" + suffix, length: 3000, journaled: journaled.other)
        try await download("file", length: 5000, journaled: journaled.own)
        #expect(directory["file"] == pattern(0..<5000))
        #expect(directory["file" + suffix] == pattern(0..<3000))
        #expect(directory.names == ["file", "file" + suffix])
        for name in directory.names {
            guard case .finished = try storage.survey(directory.place(name)) else {
                Issue.record("\(name) is not known as finished")
                continue
            }
        }
        #expect(directory.names == ["file", "file" + suffix])
    }

    /// The file of another program keeps at least its bytes, whatever they are.
    @Test(arguments: suffixes, [[7], pattern(0..<3000), [UInt8](repeating: 0, count: 600)])
    func anotherProgramsFileKeepsItsBytes(_ suffix: String, _ bytes: [UInt8]) async throws {
        for journaled in [false, true] {
            directory["file" + suffix] = bytes
            try await download("file", length: 5000, journaled: journaled)
            #expect(directory["file"] == pattern(0..<5000))
            #expect(directory.names.contains { directory[$0] == bytes }, "\(directory.names)")
            for name in directory.names { directory[name] = nil }
        }
    }

    /// A finished small file that a user renames is not taken for a part file that a crash left before its rename.
    @Test func aFinishedFileThatWasRenamedIsNoPartFile() async throws {
        try await download("file", length: 5000, journaled: false)
        rename(directory.path + "/file", directory.path + "/file.tow")
        try await download("file", length: 5000, journaled: false)
        #expect(directory.names == ["file", "file.tow"])
    }

    /// A crash between mark and rename leaves a part file that is identified as one; a crash between the rename and the
    /// last mark leaves a finished file, which gets that mark.
    @Test func theMarkTellsAPartFileUntilItHasItsName() async throws {
        let part = try storage.make(directory.place(), length: 5000, journaled: false)
        try part.fill(0..<5000)
        let file = try #require((part.sink as? PartFile)?.file)
        try FinishedMark.put(
            on: file, source: "http://example.test/file?a=1", length: 5000, modified: nil, under: nil, isPending: true)
        #expect(FinishedMark.isUnfinished(file))
        part.sink.close()
        rename(directory.path + "/file.tow", directory.path + "/file")
        guard case .finished = try storage.survey(directory.place()) else {
            Issue.record("not finished")
            return
        }
        rename(directory.path + "/file", directory.path + "/file.tow")
        guard case .nothing = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(directory.names == ["file.tow"])
    }

    /// Discarding or restarting a download removes the part file only if the journal was made with it.
    @Test(arguments: [false, true]) func aFileInThePlaceOfAPartFileIsNotRemoved(_ isReplaced: Bool) throws {
        try storage.make(directory.place(), length: 4 << 20).sink.close()
        directory["file.tow"] = nil
        directory["file.tow"] = pattern(0..<2000)
        let part = try #require(try storage.unfinished(directory.place()))
        if isReplaced {
            let next = try storage.replace(
                part, place: directory.place(), record: .sample(length: 5000, generation: 2),
                terms: CreateTerms(journaled: true))
            #expect(next.notices.count == 1)
            next.sink.discard()
        } else {
            part.sink.discard()
        }
        #expect(directory.names == ["file.tow"] && directory["file.tow"] == pattern(0..<2000))
    }

    /// The error names the other download. No policy takes the file for a finished one or replaces it.
    @Test(arguments: ["file.tow", "file.tow-journal"], ExistingPolicy.allCases)
    func theFilesOfAnUnfinishedDownloadAreNoDestination(_ name: String, _ policy: ExistingPolicy) async throws {
        let other = try storage.make(directory.place(name), length: 100, journaled: false)
        try other.fill(0..<100)
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        let surveyed = #expect(throws: TowlineError.self) { try storage.survey(named: directory.place(name), for: nil) }
        #expect(surveyed?.code == .destinationExists)
        let published = await #expect(throws: TowlineError.self) {
            try await other.sink.publish(PublishTerms(existing: policy, durable: true, length: 100, modified: nil))
        }
        #expect(published?.message.contains("unfinished download of \(directory.path)/file.") == true)
        part.sink.close()
        #expect(try storage.unfinished(directory.place())?.claims.count == 5000)
    }
}
