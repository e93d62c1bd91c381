import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Another program changes the part file before it is published.
@Suite struct ChangedPartTests {
    let directory = ScratchDirectory()

    /// A change of the part file that leaves bytes missing.
    enum Change: CaseIterable, Sendable {
        case shortened, hole, replaced, deleted

        func apply(to path: String) {
            var status = stat()
            stat(path, &status)
            switch self {
            case .shortened: truncate(path, 4096)
            case .hole:
                truncate(path, 4096)
                truncate(path, status.st_size)
            case .replaced:
                let file = open(path + "-new", O_RDWR | O_CREAT, 0o600)
                ftruncate(file, status.st_size)
                close(file)
                rename(path + "-new", path)
            case .deleted: unlink(path)
            }
        }
    }

    private func whole(_ storage: FileStorage, journaled: Bool) throws -> OpenPart {
        let part = try storage.make(directory.place(), length: 50_000, journaled: journaled)
        try part.fill(0..<50_000)
        return part
    }

    @Test(arguments: [true, false], Change.allCases)
    func isNotPublished(_ journaled: Bool, _ change: Change) async throws {
        let part = try whole(FileStorage(), journaled: journaled)
        try part.sink.checkIntact(upTo: 50_000)
        change.apply(to: directory.path + "/file.tow")
        let error = await #expect(throws: TowlineError.self) { try await part.sink.publish(.plain(50_000)) }
        #expect(error?.isPartLost == true, "\(String(describing: error))")
        #expect(!directory.names.contains("file"))
        #expect(throws: TowlineError.self) { try part.sink.checkIntact(upTo: 50_000) }
    }

    /// The change comes during the last sync, which may take long.
    @Test(arguments: [true, false], [Change.shortened, .hole])
    func duringTheSyncIsNotPublished(_ journaled: Bool, _ change: Change) async throws {
        let path = directory.path + "/file.tow"
        let faulty = FaultySyscall()
        let part = try whole(FileStorage(syscall: faulty), journaled: journaled)
        faulty.setPlan { call, _ in
            if call == .fsync || call == .syncfs { change.apply(to: path) }
            return nil
        }
        let error = await #expect(throws: TowlineError.self) { try await part.sink.publish(.plain(50_000)) }
        #expect(error?.isPartLost == true, "\(String(describing: error))")
        #expect(!directory.names.contains("file"))
    }

    /// While bytes arrive, the regular check finds a part file that is shorter than its journal states.
    @Test func isFoundWhileBytesArrive() throws {
        let part = try whole(FileStorage(), journaled: true)
        try part.sink.checkIntact()
        Change.shortened.apply(to: directory.path + "/file.tow")
        let error = #expect(throws: TowlineError.self) { try part.sink.checkIntact() }
        #expect(error?.isPartLost == true)
    }

    /// The download starts again in a directory that was deleted. The error names the directory, not one of our files.
    @Test func aDeletedDirectoryIsNamed() throws {
        let (storage, folder) = (FileStorage(), directory.path + "/sub")
        #expect(mkdir(folder, 0o700) == 0)
        let place = Place(directory: folder, name: "file")
        let part = try storage.make(place, length: 50_000)
        for name in ["file.tow", "file.tow-journal"] { #expect(unlink(folder + "/" + name) == 0) }
        #expect(rmdir(folder) == 0)
        let error = #expect(throws: TowlineError.self) {
            try storage.replace(
                part, place: place, record: .sample(length: 5000, generation: 2), terms: CreateTerms(journaled: true))
        }
        #expect(error?.message.contains("the directory \(folder) was deleted") == true, "\(error as Any)")
    }

    /// Only file systems that report holes exactly are asked: others store written zeros as holes.
    @Test func aHoleOfAnUnknownFileSystemProvesNothing() async throws {
        let faulty = FaultySyscall()
        faulty.setType(0x2FC1_2FC1)
        let part = try whole(FileStorage(syscall: faulty), journaled: true)
        Change.hole.apply(to: directory.path + "/file.tow")
        _ = try await part.sink.publish(.plain(50_000))
        #expect(directory.names == ["file"])
    }
}
