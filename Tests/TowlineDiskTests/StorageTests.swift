import Glibc
import Synchronization
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests surveys of the files that may exist at a destination, on the real file system.
@Suite struct StorageTests {
    let directory = ScratchDirectory()
    let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))
    let afterReboot = FileStorage(boot: BootIdentity(high: 2, low: 2))

    @Test func aNewPlaceHoldsNothing() throws {
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(notices.isEmpty)
        directory["file"] = [1]
        guard case .occupied = try storage.survey(directory.place()) else {
            Issue.record("not occupied")
            return
        }
    }

    @Test func writtenMarksCountWithinABootAndDurableOnesAfterIt() async throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<1000)
        try await part.journal?.checkpoint(part.sink)
        try part.fill(1000..<3000)
        try part.fill(500_000..<500_100)
        part.sink.close()

        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.claims == ByteRangeSet([ByteRange(0, 3000), ByteRange(500_000, 500_100)]))
        #expect(again.notices.isEmpty && !again.isDoubtful)
        #expect(again.journal?.record == .sample(length: 4 << 20))
        #expect(again.journal?.durable == ByteRangeSet([ByteRange(0, 1000)]))
        #expect(try again.bytes(0..<3000) == pattern(0..<3000))
        again.sink.close()

        let later = try #require(try afterReboot.unfinished(directory.place()))
        #expect(later.claims == ByteRangeSet([ByteRange(0, 1000)]))
        later.sink.close()
    }

    @Test func filesHaveTheModesTheyShould() throws {
        let old = umask(0o022)
        defer { umask(old) }
        let part = try storage.make(directory.place(), length: 4 << 20)
        #expect(directory.mode("file.tow") == 0o600)
        #expect(directory.mode("file.tow-journal") == 0o600)
        part.sink.discard()
        #expect(directory.names.isEmpty)
    }

    /// Without the permission to open or remove a file, it does not count as removed, and a part file keeps its bytes.
    @Test(arguments: [FaultySyscall.Call.openat, .unlink]) func whatCannotBeRemovedStays(
        _ call: FaultySyscall.Call
    ) throws {
        let faulty = FaultySyscall()
        let storage = FileStorage(syscall: faulty)
        let (source, written) = (DownloadRecord.sample(length: nil).source, ByteRangeSet([ByteRange(0, 1000)]))
        // Keeps the directory open, so that the error is that of the file.
        let other = try storage.make(directory.place("other"), length: 100, journaled: false)
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<1000)
        part.sink.close()
        directory["finished"] = [1]
        faulty.setPlan { next, _ in next == call ? .error(EACCES) : nil }
        let error = #expect(throws: TowlineError.self) { try storage.discard(directory.place(), from: [source]) }
        #expect(error?.code == .diskPermission, "\(error as Any)")
        if call == .openat {
            let error = #expect(throws: TowlineError.self) {
                try storage.isPublished(directory.place("finished"), from: [source], length: 1)
            }
            #expect(error?.code == .diskPermission, "\(error as Any)")
        }
        #expect(try !storage.isPublished(directory.place("missing"), from: [source], length: 1))
        faulty.setPlan { _, _ in nil }
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.claims == written)
        again.sink.close()
        try storage.discard(directory.place(), from: [source])
        try storage.discard(directory.place(), from: [source])
        other.sink.discard()
        #expect(directory.names == ["finished"])
    }

    /// Part files of earlier versions were open to all, so any user could lock them.
    @Test func aResumedPartFileIsClosedToOthers() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<1000)
        part.sink.close()
        #expect(chmod(directory.path + "/file.tow", 0o644) == 0)
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(directory.mode("file.tow") == 0o600)
        again.sink.close()
    }

    @Test func aSecondWriterIsToldWhoTheFirstIs() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        let error = #expect(throws: TowlineError.self) { try afterReboot.survey(directory.place()) }
        #expect(error?.code == .destinationBusy)
        #expect(error?.message.contains("already downloading") == true)
        part.sink.close()
        #expect(try storage.unfinished(directory.place()) != nil)
    }

    /// Opening the part file waits for its lock. A stopped transfer releases the lock when its last write returns, and
    /// a forked child process when its program begins.
    @Test func aLockThatIsAboutToGoIsWaitedFor() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        // A child process that was just forked has copies of the open files.
        let copy = try #require(directory.duplicate(of: "file.tow"))
        let journal = try #require(directory.duplicate(of: "file.tow-journal"))
        part.sink.close()
        // The child's program begins while the storage retries the lock.
        let tries = Mutex(0)
        let child = FaultySyscall { call, _ in
            guard call == .lock else { return nil }
            let number = tries.withLock { count in
                count += 1
                return count
            }
            if number == 3 {
                close(copy)
                close(journal)
            }
            return nil
        }
        let again = try FileStorage(syscall: child, boot: BootIdentity(high: 1, low: 1)).unfinished(directory.place())
        #expect(again?.claims.isEmpty == false)
        #expect(child.calls.count { $0 == .lock } == 4, "three for the part file, one for its journal")
    }

    /// Between opening and locking, another process completed the file, and a third one started again.
    @Test func aFileThatWasExchangedBeforeItsLockIsNotTaken() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        part.sink.close()
        let directory = directory.path
        let faulty = FaultySyscall { call, index in
            if call == .lock, index < 8 {
                rename(directory + "/file.tow", directory + "/gone")
                fclose(fopen(directory + "/file.tow", "w"))
            }
            return nil
        }
        let again = try FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1)).unfinished(
            Place(directory: directory, name: "file"))
        #expect(faulty.calls.count { $0 == .lock } == 4)
        #expect(again?.claims.isEmpty == true)
    }

    /// A small part file has no journal; its mark identifies it as ours. A user's own file of that name is kept.
    @Test(arguments: [true, false]) func aSmallPartFileIsRemovedIfItIsOurs(_ isOurs: Bool) throws {
        if isOurs {
            let part = try storage.make(directory.place(), length: 5000, journaled: false)
            try part.fill(0..<3000)
            part.sink.close()
        } else {
            directory["file.tow"] = pattern(0..<3000)
        }
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(directory.names == (isOurs ? [] : ["file.tow-aside"]))
        #expect(notices.count == (isOurs ? 0 : 1))
    }

    /// Another download has just published here, and has not retired its journal yet: the journal must not be removed.
    @Test func aNameThatWasTakenMeanwhileCostsNobodyAJournal() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        #expect(rename(directory.path + "/file.tow", directory.path + "/file") == 0)
        let error = #expect(throws: TowlineError.self) {
            try storage.create(
                directory.place(), record: .sample(length: 4 << 20, name: "file"),
                terms: CreateTerms(journaled: true, requiresFreeName: true))
        }
        #expect(error?.code == .destinationExists)
        #expect(directory.names == ["file", "file.tow-journal"])
        let busy = #expect(throws: TowlineError.self) {
            try storage.create(
                directory.place(), record: .sample(length: 4 << 20, name: "file"), terms: CreateTerms(journaled: true))
        }
        #expect(busy?.code == .destinationBusy)
        #expect(directory.names == ["file", "file.tow-journal"])
        part.sink.close()
    }

    /// The machine still runs, but the disk was removed: bytes that were written and not synced no longer count.
    @Test(arguments: ["7", "8"]) func aDiskThatWasPulledIsAnotherRun(_ later: String) throws {
        directory["sequence"] = Array("7\n".utf8)
        let disk = FaultySyscall()
        disk.setDiskSequence(file: directory.path + "/sequence")
        let storage = FileStorage(syscall: disk, boot: BootIdentity(high: 1, low: 1))
        let part = try storage.make(directory.place(), length: 2 << 20)
        try part.fill(0..<1 << 20)
        part.sink.close()
        directory["sequence"] = Array((later + "\n").utf8)
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.claims == (later == "7" ? ByteRangeSet([ByteRange(0, 1 << 20)]) : ByteRangeSet()))
        again.sink.close()
    }

    /// The file is preallocated to its complete length, so it looks finished.
    @Test func anUnfinishedFileThatWasRenamedIsNotFinished() throws {
        let part = try storage.make(directory.place(), length: 2 << 20)
        try part.fill(0..<1 << 20)
        part.sink.close()
        #expect(truncate(directory.path + "/file.tow", 2 << 20) == 0)
        #expect(rename(directory.path + "/file.tow", directory.path + "/file") == 0)
        let error = #expect(throws: TowlineError.self) { try storage.survey(directory.place()) }
        #expect(error?.code == .unusableDestination)
        #expect(directory.names == ["file", "file.tow-journal"])
        #expect(rename(directory.path + "/file", directory.path + "/file.tow") == 0)
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.claims == ByteRangeSet([ByteRange(0, 1 << 20)]))
        again.sink.close()
    }

    /// The claims of a file without a known length end at the end of the file.
    @Test func anUnfinishedFileOfUnknownLengthThatWasRenamedIsNotFinished() throws {
        let part = try storage.create(
            directory.place(), record: .sample(length: nil), terms: CreateTerms(journaled: true))
        try part.fill(0..<1 << 20)
        part.sink.close()
        #expect(rename(directory.path + "/file.tow", directory.path + "/file") == 0)
        let error = #expect(throws: TowlineError.self) { try storage.survey(directory.place()) }
        #expect(error?.code == .unusableDestination)
        #expect(directory.names == ["file", "file.tow-journal"])
    }

    @Test func aPartFileIsNotCreatedTwice() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        let error = #expect(throws: TowlineError.self) { try storage.make(directory.place(), length: 4 << 20) }
        #expect(error?.code == .destinationBusy)
        #expect(directory.names == ["file.tow", "file.tow-journal"])
        #expect(try part.bytes(0..<5000) == pattern(0..<5000))
    }

    @Test(arguments: ["file.tow", "file.tow-journal"])
    func linksPipesAndDirectoriesAreRefused(_ name: String) throws {
        let path = directory.path + "/" + name
        for make in [
            { symlink("/etc/passwd", path) }, { mkfifo(path, 0o600) }, { mkdir(path, 0o700) },
        ] as [() -> Int32] {
            #expect(make() == 0)
            let error = #expect(throws: TowlineError.self) { try storage.survey(directory.place()) }
            #expect(error?.code == .unusableDestination)
            remove(path)
        }
    }

    /// In a directory like `/tmp`, any user can create bytes and a journal that claims them.
    @Test(arguments: ["file.tow", "file.tow-journal", "file"])
    func filesOfAnotherUserAreNotTrusted(_ name: String) async throws {
        let disk = SimulatedDisk()
        let part = try FileStorage(syscall: disk).make(Script.place, length: 1000)
        try part.fill(0..<1000)
        if name == "file" { _ = try await part.sink.publish(.plain(1000)) }
        disk.killProcess()
        var image = disk.image
        let inode = try #require(image.names[name])
        image.inodes[inode]?.owner = geteuid() + 1
        let later = FileStorage(syscall: SimulatedDisk(image))
        if name == "file" {
            guard case .occupied = try later.survey(Script.place) else {
                Issue.record("believed to be finished")
                return
            }
        } else {
            let error = #expect(throws: TowlineError.self) { try later.survey(Script.place) }
            #expect(error?.code == .unusableDestination)
        }
    }

    /// In a user namespace, 65534 is every user without a number, so the owner of `/tmp` looks like any other user.
    @Test func anOwnerWithoutANumberIsNotTrustedWhereOthersWrite() {
        var directory = FileStatus()
        directory.owner = 65534
        directory.mode = 0o1777
        #expect(Folder.trustedOwner(of: directory, inNamespace: true) == nil)
        #expect(Folder.trustedOwner(of: directory, inNamespace: false) == 65534)
        directory.mode = 0o755
        #expect(Folder.trustedOwner(of: directory, inNamespace: true) == 65534)
        (directory.owner, directory.mode) = (0, 0o1777)
        #expect(Folder.trustedOwner(of: directory, inNamespace: true) == 0)
    }

    @Test(arguments: ["", ".", "..", "a/b", "a\0b"])
    func aNameIsOneComponent(_ name: String) {
        let error = #expect(throws: TowlineError.self) { try storage.survey(directory.place(name)) }
        #expect(error?.code == .unusableDestination)
    }

    @Test(arguments: [false, true]) func aDirectoryIsSharedUntilThePathLeadsElsewhere(_ forOneRun: Bool) throws {
        let storage = FileStorage(lookupLife: .zero, forOneRun: forOneRun)
        let first = try storage.folders.folder(directory.path)
        #expect(try storage.folders.folder(directory.path) === first)
        let path = directory.path + "/sub"
        mkdir(path, 0o700)
        let sub = try storage.folders.folder(path)
        rename(path, path + "2")
        mkdir(path, 0o700)
        #expect(try storage.folders.folder(path) !== sub)
        remove(path)
        let error = #expect(throws: TowlineError.self) { try storage.folders.folder(path) }
        #expect(error?.code == .unusableDestination)
    }

    /// The few steps of one small file resolve the path once.
    @Test(arguments: [false, true]) func aPathIsNotLookedUpAgainForAMoment(_ forOneRun: Bool) throws {
        let faulty = FaultySyscall()
        let storage = FileStorage(syscall: faulty, lookupLife: .seconds(60), forOneRun: forOneRun)
        let first = try storage.folders.folder(directory.path)
        let looks = faulty.calls.count { $0 == .status }
        #expect(
            try storage.folders.folder(directory.path) === first && storage.folders.folder(directory.path) === first)
        #expect(faulty.calls.count { $0 == .status } == looks)
    }

    @Test func aMissingDirectoryIsNamed() {
        let place = Place(directory: directory.path + "/none", name: "file")
        let error = #expect(throws: TowlineError.self) { try storage.survey(place) }
        #expect(error?.code == .unusableDestination)
        #expect(error?.message.contains("/none") == true)
    }

    @Test(arguments: [0, 100, 4096 + 30])
    func aDamagedJournalIsSetAside(_ offset: Int) throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<2_000_000)
        part.sink.close()
        directory.poke("file.tow-journal", at: offset, [0xAA, 0xBB])
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(notices.count == 2)
        #expect(directory.names == ["file.tow-aside", "file.tow-journal-aside"])
    }

    @Test func aNewerJournalIsLeftUntouched() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        part.sink.close()
        var bytes = try #require(directory["file.tow-journal"])
        bytes[8] = 2
        bytes.store(CRC32C.checksum(bytes[..<508]), at: 508)
        directory["file.tow-journal"] = bytes
        let error = #expect(throws: TowlineError.self) { try storage.survey(directory.place()) }
        #expect(error?.code == .unsupportedJournal)
        #expect(directory["file.tow-journal"] == bytes)
    }

    @Test(arguments: [false, true])
    func unknownSectionsAreSkippedUnlessNeeded(_ isNeeded: Bool) throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        part.sink.close()
        var bytes = try #require(directory["file.tow-journal"])
        bytes[14] = 3
        bytes.store(UInt16(99), at: 32 + 48)
        bytes.store(UInt16(isNeeded ? 1 : 0), at: 32 + 50)
        bytes.store(CRC32C.checksum(bytes[..<508]), at: 508)
        directory["file.tow-journal"] = bytes
        if isNeeded {
            let error = #expect(throws: TowlineError.self) { try storage.survey(directory.place()) }
            #expect(error?.code == .unsupportedJournal)
        } else {
            #expect(try storage.unfinished(directory.place())?.claims.count == 5000)
        }
    }

    @Test func aDamagedMarkCostsItsRunAlone() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        try part.fill(100_000..<100_500)
        part.sink.close()
        directory.poke("file.tow-journal", at: 4096 + 2 * MetadataBlock.byteCount + 8, [0x77])
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.claims == ByteRangeSet([ByteRange(100_000, 100_500)]))
        #expect(again.notices.count == 1)
    }

    @Test func aShorterPartIsClippedAndALongerOneCut() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        part.sink.close()
        truncate(directory.path + "/file.tow", 3000)
        let shorter = try #require(try storage.unfinished(directory.place()))
        #expect(shorter.claims == ByteRangeSet([ByteRange(0, 3000)]))
        #expect(shorter.journal?.written == shorter.claims)
        #expect(shorter.notices.count == 1)
        shorter.sink.close()
        truncate(directory.path + "/file.tow", 6 << 20)
        let longer = try #require(try storage.unfinished(directory.place()))
        #expect(directory["file.tow"]?.count == 4 << 20)
        #expect(longer.claims == ByteRangeSet([ByteRange(0, 3000)]))
    }

    @Test func aCopiedPartIsDoubtfulAndClaimsNoHole() async throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<8192)
        try part.fill(1_048_576..<1_056_768)
        part.sink.close()
        // A copy that lacks the second run has a hole there.
        let bytes = try #require(directory["file.tow"])
        directory["file.tow"] = nil
        directory["file.tow"] = Array(bytes[..<8192])
        truncate(directory.path + "/file.tow", 4 << 20)
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.isDoubtful)
        #expect(again.claims == ByteRangeSet([ByteRange(0, 8192)]))
        #expect(again.notices.isEmpty, "the transfer decides about the copy")
        #expect(again.journal?.written == again.claims)
    }

    /// A copy is renamed and keeps its bytes, unless a checksum will prove it.
    @Test func aCopyIsSetAside() async throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<8192)
        part.sink.close()
        let bytes = try #require(directory["file.tow"])
        directory["file.tow"] = nil
        directory["file.tow"] = bytes
        guard case .nothing(let notices) = try storage.survey(directory.place(), for: nil, allowsCopies: false) else {
            Issue.record("something")
            return
        }
        #expect(notices.contains { $0.contains("copied or replaced") })
        #expect(directory["file.tow-aside"] == bytes && directory.names == ["file.tow-aside"])
    }

    /// The other name of a hard link keeps its bytes.
    @Test func aHardLinkIsNotUsed() async throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<8192)
        part.sink.close()
        let bytes = try #require(directory["file.tow"])
        #expect(link(directory.path + "/file.tow", directory.path + "/other") == 0)
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(notices.contains { $0.contains("hard link") })
        #expect(directory["other"] == bytes)
        #expect(!directory.names.contains("file.tow"))
    }

    /// A part file that the journal does not describe is not cut to the length that the journal gives.
    @Test func aForeignPartFileKeepsItsLength() async throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        part.sink.close()
        directory["file.tow"] = nil
        directory["file.tow"] = pattern(0..<(5 << 20))
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.isDoubtful)
        again.sink.close()
        #expect(directory["file.tow"]?.count == 5 << 20)
    }

    @Test func aLargePartWithoutAJournalIsKept() throws {
        directory["file.tow"] = pattern(0..<(2 << 20))
        directory["file.tow-aside"] = [1]
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(notices.count == 1)
        #expect(directory.names == ["file.tow-aside", "file.tow-aside (1)"])
    }

    /// A file of zeros may be a user's: without a journal or a mark there is no evidence.
    @Test func aFileOfZerosIsKept() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        part.sink.close()
        directory["file.tow-journal"] = nil
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(notices.count == 1 && directory.names == ["file.tow-aside"])
    }

    @Test func aJournalWithoutItsPartClaimsNothing() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        part.sink.close()
        directory["file.tow"] = nil
        guard case .nothing(let notices) = try storage.survey(directory.place()) else {
            Issue.record("something")
            return
        }
        #expect(notices.count == 1 && directory.names.isEmpty)
    }

    @Test func aStrayJournalDoesNotClaimTheNextPart() throws {
        let part = try storage.make(directory.place(), length: 4 << 20)
        try part.fill(0..<5000)
        part.sink.close()
        let journal = open(directory.path + "/file.tow-journal", O_RDONLY)
        directory["file.tow"] = nil
        try storage.make(directory.place(), length: 4 << 20, journaled: false).sink.close()
        #expect(directory.names == ["file.tow"])
        // If a power loss restores the old name, the journal under it claims nothing.
        var state = [UInt8](repeating: 0, count: 2)
        pread(journal, &state, 2, 12)
        #expect(state == [2, 0])
        close(journal)
    }

    @Test func aDownloadIsFoundByItsSource() throws {
        for name in ["a", "b"] {
            let part = try storage.create(
                directory.place(name),
                record: DownloadRecord(
                    source: "http://example.test/" + name, resolved: "", name: name, representation: .init(),
                    checksums: [], generation: 1), terms: CreateTerms(journaled: true))
            part.sink.close()
        }
        #expect(storage.find(source: "http://example.test/b", inDirectory: directory.path) == directory.place("b"))
        #expect(storage.find(source: "http://example.test/c", inDirectory: directory.path) == nil)
        directory["b.tow"] = nil
        #expect(storage.find(source: "http://example.test/b", inDirectory: directory.path) == nil)
    }

    /// Unfinished downloads are those of the last reading of the directory. Creating the file detects later ones.
    @Test func aPlaceSeemsVacantWhereNothingWas() throws {
        for name in ["left.tow", "right.tow-journal", "next.tow-next", "new.tow-journal-new", "there"] {
            directory[name] = [1]
        }
        #expect(!storage.seemsVacant(directory.place("free")), "the directory was not read yet")
        _ = storage.find(source: "http://example.test/", inDirectory: directory.path)
        for name in ["left", "right", "next", "new", "there", "..", "a/b"] {
            #expect(!storage.seemsVacant(directory.place(name)), "\(name)")
        }
        #expect(storage.seemsVacant(directory.place("free")))
        directory["free.tow"] = [1]
        #expect(storage.seemsVacant(directory.place("free")))
        // The caller has not surveyed the place; this error makes the caller do so.
        let error = #expect(throws: TowlineError.self) {
            try storage.create(
                directory.place("free"), record: .sample(length: 10),
                terms: CreateTerms(journaled: false, requiresFreeName: true))
        }
        #expect(error?.code == .destinationBusy)
        let nobodys = FileStorage(syscall: FaultySyscall { call, _ in call == .names ? .error(EACCES) : nil })
        _ = nobodys.find(source: "http://example.test/", inDirectory: directory.path)
        #expect(!nobodys.seemsVacant(directory.place("other")), "a directory that nobody may read")
    }

    @Test func whatThisProcessPublishedIsNotVacant() async throws {
        directory["old"] = [1]
        _ = storage.find(source: "http://example.test/", inDirectory: directory.path)
        #expect(storage.seemsVacant(directory.place("mine")))
        let part = try storage.make(directory.place("mine"), length: 10, journaled: false)
        try part.fill(0..<10)
        _ = try await part.sink.publish(.plain(10))
        #expect(!storage.seemsVacant(directory.place("mine")))
        #expect(storage.seemsVacant(directory.place("other")))
    }

    @Test(arguments: [(EROFS, TowlineError.Code.diskPermission), (EACCES, .diskPermission), (EIO, .diskFailure)])
    func refusedCreationSaysWhy(_ number: Int32, _ code: TowlineError.Code) throws {
        let faulty = FileStorage(
            syscall: FaultySyscall { call, index in call == .openat && index > 2 ? .error(number) : nil },
            boot: BootIdentity(high: 1, low: 1))
        let error = #expect(throws: TowlineError.self) { try faulty.make(directory.place(), length: 4 << 20) }
        #expect(error?.code == code)
        #expect(error?.systemError == number)
        #expect(error?.message.contains("file.tow") == true)
    }
}
