import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Tests of files of the registry that another program deletes, replaces or truncates while the registry is open.
@Suite struct DeletedFilesTests {
    private let state = TemporaryState()

    /// A loss of files of an open registry.
    enum Loss: String, CaseIterable {
        case database, log, sharedMemory, everything, directory, replacedDatabase, movedDirectory
        case truncatedDatabase, truncatedLog
    }

    private func strike(_ loss: Loss) throws {
        switch loss {
        case .database: #expect(unlink(state.database) == 0)
        case .log: #expect(unlink(state.database + "-wal") == 0)
        case .sharedMemory: #expect(unlink(state.database + "-shm") == 0)
        case .everything: for name in state.names { #expect(unlink(state.directory + "/" + name) == 0) }
        case .directory: removeTree(state.directory)
        case .replacedDatabase:
            writeFile(state.path + "/other", Array("not a database".utf8))
            #expect(rename(state.path + "/other", state.database) == 0)
        case .movedDirectory: #expect(rename(state.directory, state.path + "/moved") == 0)
        case .truncatedDatabase: #expect(truncate(state.database, 0) == 0)
        case .truncatedLog: #expect(truncate(state.database + "-wal", 0) == 0)
        }
    }

    /// Returns the list that another process would find after a kill at this moment.
    private func listAfterAKill() async throws -> [RegisteredDownload] {
        let copy = TemporaryState()
        mkdir(copy.directory, 0o700)
        for name in state.names { writeFile(copy.directory + "/" + name, state.bytes(name)) }
        let registry = try await copy.open()
        let list = try await allDownloads(registry)
        await registry.close()
        return list
    }

    @Test(arguments: Loss.allCases) func everyAcknowledgedAddIsOnTheDisk(_ loss: Loss) async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<200).map { Sample.download($0) })
        try strike(loss)
        for number in 200..<210 { #expect(try await registry.add([Sample.download(number)]) == [.added]) }
        #expect(try await Set(listAfterAKill().map(\.id)) == Set((0..<210).map { Sample.id($0) }))
        #expect(registry.notices.count { $0.contains("written again") } == 1)
        #expect(state.names.allSatisfy { !$0.contains("rebuil") }, "\(state.names)")
        // No other process can open the list meanwhile.
        await #expect(throws: TowlineError.self) { try await state.open() }
        await registry.close()
        let again = try await state.open()
        #expect(try await allDownloads(again).count == 210)
        #expect(again.directory?.knownDirectories.count == 5)
        #expect(again.notices.isEmpty)
        await again.close()
    }

    /// A kill may come before the next write. The new files may be deleted, too.
    @Test(.timeLimit(.minutes(1)), arguments: Loss.allCases)
    func theListIsWrittenAgainWithoutAWrite(_ loss: Loss) async throws {
        let registry = try await state.open()
        let (told, telling) = AsyncStream.makeStream(of: String.self)
        registry.onNotice { telling.yield($0) }
        _ = try await registry.add((0..<200).map { Sample.download($0) })
        var notices = told.makeAsyncIterator()
        // The second time, all data is in the database, and the log is empty.
        let isTruncation = loss == .truncatedDatabase || loss == .truncatedLog
        for again in isTruncation ? [false] : [false, true] {
            if again { removeTree(state.path + "/moved") }
            try strike(loss)
            let notice = await notices.next()
            #expect(notice?.contains("written again") == true)
            #expect(try await listAfterAKill().count == 200)
            // Waits for the end of the call that wrote the files.
            try await registry.emptyLog()
        }
        await registry.close()
    }

    /// The files are deleted after the last check before the commit.
    @Test func aLossDuringTheCommitIsMendedBeforeItIsReported() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1)])
        let path = state.database
        let additions = try await registry.add([Sample.download(1), Sample.download(2)]) { _, _ in _ = unlink(path) }
        #expect(additions == [.existing(Sample.id(1)), .added])
        #expect(registry.notices.count { $0.contains("written again") } == 1)
        #expect(try await Set(listAfterAKill().map(\.id)) == [Sample.id(1), Sample.id(2)])
        await registry.close()
    }

    /// A new process has read little of the list when the database loses all its pages.
    @Test(arguments: [true, false]) func aSmallListIsInMemoryAfterOpening(_ isWritten: Bool) async throws {
        var registry = try await state.open()
        for start in stride(from: 0, to: 1000, by: 200) {
            _ = try await registry.add((start..<start + 200).map { Sample.download($0) })
        }
        await registry.close()
        registry = try await state.open()
        let (told, telling) = AsyncStream.makeStream(of: String.self)
        registry.onNotice { telling.yield($0) }
        #expect(truncate(state.database, 0) == 0)
        if isWritten { #expect(try await registry.add([Sample.download(1000)]) == [.added]) }
        var notices = told.makeAsyncIterator()
        #expect(await notices.next()?.contains("No download was lost") == true)
        #expect(try await listAfterAKill().count == (isWritten ? 1001 : 1000))
        await registry.close()
    }

    /// All data is in the database, and the log is empty, before the database loses its second half.
    @Test func aTruncatedDatabaseIsWrittenAgain() async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<200).map { Sample.download($0) })
        try await registry.emptyLog()
        #expect(registry.notices.isEmpty)
        #expect(truncate(state.database, off_t(state.bytes("registry.sqlite").count / 2)) == 0)
        #expect(try await registry.add([Sample.download(200)]) == [.added])
        #expect(try await Set(listAfterAKill().map(\.id)) == Set((0...200).map { Sample.id($0) }))
        #expect(registry.notices.count { $0.contains("written again") } == 1)
        await registry.close()
    }

    /// The process was killed, and its log has all the data. SQLite would delete the log of an empty database.
    @Test(arguments: [false, true]) func theLogOfALostDatabaseIsRead(_ isDeleted: Bool) async throws {
        let registry = try await state.open()
        _ = try await registry.add((0..<200).map { Sample.download($0) })
        let copy = TemporaryState()
        mkdir(copy.directory, 0o700)
        for name in state.names where name != "registry.sqlite-shm" {
            writeFile(copy.directory + "/" + name, state.bytes(name))
        }
        #expect(isDeleted ? unlink(copy.database) == 0 : truncate(copy.database, 0) == 0)
        let again = try await copy.open()
        #expect(try await allDownloads(again).count == 200)
        #expect(again.notices.count == 1)
        await again.close()
        await registry.close()
    }

    /// The copy of the list needs space. Without it, no add is acknowledged, and nothing that is in memory is lost.
    @Test func anAddThatCannotReachTheDiskIsAnError() async throws {
        let registry = try await state.open()
        _ = try await registry.add([Sample.download(1)])
        // The registry may write the directory again before the file is there.
        var number = 0
        while readFile(state.directory) != [1] {
            number += 1
            _ = rename(state.directory, state.path + "/moved \(number)")
            writeFile(state.directory, [1])
        }
        await #expect(throws: TowlineError.self) { try await registry.add([Sample.download(2)]) }
        #expect(unlink(state.directory) == 0)
        #expect(try await registry.add([Sample.download(3)]) == [.added])
        #expect(try await Set(listAfterAKill().map(\.id)).isSuperset(of: [Sample.id(1), Sample.id(3)]))
        await registry.close()
    }

    /// Root can mount a small file system.
    @Test(.enabled(if: geteuid() == 0)) func removingNeedsNoFreeSpace() async throws {
        mkdir(state.directory, 0o700)
        try #require(mount("tmpfs", state.directory, "tmpfs", 0, "size=8m,mode=0700") == 0)
        defer { umount2(state.directory, 2) }
        let registry = try await state.open()
        for start in stride(from: 0, to: 400, by: 20) {
            _ = try await registry.add((start..<start + 20).map { Sample.download($0) })
        }
        try await registry.remove([Sample.id(0)])
        let filler = open(state.directory + "/filler", O_WRONLY | O_CREAT, 0o600)
        let zeros = [UInt8](repeating: 0, count: 4096)
        while write(filler, zeros, zeros.count) > 0 {}
        close(filler)
        let error = await #expect(throws: TowlineError.self) {
            for number in 1000..<3000 { _ = try await registry.add([Sample.download(number)]) }
        }
        #expect(error?.code == .diskFull)
        for number in 1..<200 { #expect(try await registry.remove([Sample.id(number)], onlyFrom: nil) == [.applied]) }
        #expect(try await registry.download(Sample.id(1)) == nil)
        #expect(unlink(state.directory + "/filler") == 0)
        // The space that could not be reserved on the full disk is reserved now.
        _ = unlink(state.directory + "/reserve")
        try await registry.remove([Sample.id(200)])
        #expect(state.bytes("reserve").count == 1 << 20)
        await registry.close()
    }
}
