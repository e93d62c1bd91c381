import CTowline
import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests the end of a download, on the real file system.
@Suite struct PublishTests {
    let directory = ScratchDirectory()
    let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))

    private func whole(_ storage: FileStorage? = nil, journaled: Bool = true) throws -> OpenPart {
        let part = try (storage ?? self.storage).make(directory.place(), length: 5000, journaled: journaled)
        try part.fill(0..<5000)
        return part
    }

    private func publish(_ part: OpenPart, _ policy: ExistingPolicy) async throws -> PublishedFile {
        try await part.sink.publish(
            PublishTerms(existing: policy, durable: true, length: 5000, modified: 1_234_567_890))
    }

    @Test(arguments: [true, false], [true, false])
    func theFileAppearsWhole(_ journaled: Bool, _ durable: Bool) async throws {
        let part = try whole(journaled: journaled)
        try pattern(0..<100).withUnsafeBytes { try part.sink.write($0, at: 5000) }
        let file = try await part.sink.publish(
            PublishTerms(existing: .fail, durable: durable, length: 5000, modified: 1_234_567_890))
        #expect(file == PublishedFile(path: directory.path + "/file", length: 5000))
        #expect(directory["file"] == pattern(0..<5000))
        #expect(directory.names == ["file"])
        var status = stat()
        stat(file.path, &status)
        #expect(status.st_mtim.tv_sec == 1_234_567_890)
        guard case .finished(let found, let source) = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(found == PublishedFile(path: file.path, length: 5000, modified: 1_234_567_890))
        #expect(source == "http://example.test/file?a=1")
        #expect(!(source == "http://example.test/file?a=2"))
        directory.poke("file", at: 0, [0])
        guard case .occupied = try storage.survey(directory.place()) else {
            Issue.record("changed, and still called finished")
            return
        }
    }

    /// A name that the server chose replaces only an unchanged file of the same URL, and drops the executable bits. A
    /// file that appears at the last moment stays.
    @Test(arguments: [ExistingPolicy.overwrite, .update], [true, false])
    func theServersNameReplacesItsOwnFileOnly(_ policy: ExistingPolicy, _ journaled: Bool) async throws {
        func terms(isUsersName: Bool) -> PublishTerms {
            PublishTerms(
                existing: policy, isUsersName: isUsersName, durable: true, length: 5000, modified: 1_600_000_000)
        }
        var status = stat()
        for isUsersName in [true, false] {
            for _ in 0..<2 {
                _ = try await whole(journaled: journaled).sink.publish(terms(isUsersName: isUsersName))
                chmod(directory.path + "/file", 0o750)
            }
            let part = try whole(journaled: journaled)
            _ = try await part.sink.publish(terms(isUsersName: isUsersName))
            stat(directory.path + "/file", &status)
            #expect(status.st_mode & 0o777 == (isUsersName ? 0o750 : 0o640))
        }
        directory.poke("file", at: 0, [0])
        let part = try whole(journaled: journaled)
        await #expect(throws: TowlineError.self) { try await part.sink.publish(terms(isUsersName: false)) }
        #expect(directory["file"]?.first == 0)
        part.sink.close()
    }

    /// The mark contains the validators until the file changes.
    @Test(arguments: [true, false], ["\"a\"", nil])
    func theVersionIsKept(_ durable: Bool, _ tag: String?) async throws {
        let tag = tag.flatMap { EntityTag(fieldValue: $0) }
        for date in [nil, 1_234_567_890] as [Int64?] {
            let version = PublishedVersion(entityTag: tag, location: 0x1234_5678)
            _ = try await whole().sink.publish(
                PublishTerms(existing: .overwrite, durable: durable, length: 5000, modified: date, version: version))
            let kept = PublishedVersion(entityTag: tag, location: 0x1234_5678, isDated: date != nil)
            // The first survey makes a file durable that was not durable before.
            for _ in 0..<2 {
                guard case .finished(let found, _) = try storage.survey(directory.place()) else {
                    Issue.record("not known as finished")
                    return
                }
                #expect(found.version == kept)
            }
        }
        directory.poke("file", at: 0, [0])
        guard case .occupied(let found?) = try storage.survey(directory.place()) else {
            Issue.record("changed, and still called finished")
            return
        }
        #expect(found.length == 5000 && found.version == nil)
    }

    /// A long entity tag takes a block of its own on ext4: small files with a date do without the tag, and so does any
    /// file if the tag is absurdly long.
    @Test(arguments: [
        (5000, 19, true, true), (5000, 20, true, false), (5000, 20, false, true), (2 << 20, 256, true, true),
        (2 << 20, 257, false, false),
    ])
    func aLongTagIsKeptWhereItPays(_ length: Int64, _ count: Int, _ isDated: Bool, _ isKept: Bool) async throws {
        let tag = try #require(EntityTag(fieldValue: "\"" + String(repeating: "a", count: count - 2) + "\""))
        let part = try storage.make(directory.place(), length: length, journaled: false)
        try part.fill(0..<Int(length))
        _ = try await part.sink.publish(
            PublishTerms(
                existing: .fail, durable: true, length: length, modified: isDated ? 1_234_567_890 : nil,
                version: PublishedVersion(entityTag: tag, location: 1)))
        guard case .finished(let found, _) = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(found.version == PublishedVersion(entityTag: isKept ? tag : nil, location: 1, isDated: isDated))
    }

    /// A survey for another source promises nothing about the file, and does not wait for the disk.
    @Test func anothersIsNotSynced() async throws {
        _ = try await whole(journaled: false).sink.publish(
            PublishTerms(existing: .fail, durable: true, length: 5000, modified: nil))
        let counted = FaultySyscall()
        let looking = FileStorage(syscall: counted, boot: BootIdentity(high: 1, low: 1))
        for (source, isSynced) in [("http://example.test/other", false), ("http://example.test/file?a=1", true)] {
            guard case .finished = try looking.survey(directory.place(), for: source) else {
                Issue.record("not known as finished")
                return
            }
            #expect(counted.calls.contains(.fsync) == isSynced)
        }
    }

    /// The finished files of a list need one sync each, and one of their directory. The sync of the directory is
    /// omitted only if no later change of it can have the same time.
    @Test(
        arguments: [
            (0xEF53, .seconds(1_700_000_000) + .nanoseconds(1), 51),
            (0x6573_5546, .seconds(1_700_000_000) + .nanoseconds(1), 100),
            (0xEF53, .seconds(1_700_000_000), 100), (0xEF53, .seconds(40_000_000_000) + .nanoseconds(1), 100),
        ] as [(Int64, Duration, Int)])
    func finishedFilesShareTheSyncOfTheirDirectory(_ type: Int64, _ changed: Duration, _ syncs: Int) async throws {
        let names = (0..<50).map { "file\($0)" }
        for name in names {
            let part = try storage.make(directory.place(name), length: 10, journaled: false)
            try part.fill(0..<10)
            _ = try await part.sink.publish(.plain(10))
        }
        let counted = FaultySyscall()
        counted.setType(type)
        counted.setChanged(changed)
        let later = FileStorage(syscall: counted, boot: BootIdentity(high: 2, low: 2))
        for name in names {
            guard case .finished = try later.survey(directory.place(name)) else {
                Issue.record("\(name) is not known as finished")
                return
            }
        }
        #expect(counted.calls.count { $0 == .fsync } == syncs)
        counted.setChanged(changed + .nanoseconds(1))
        _ = try later.survey(directory.place(names[0]))
        #expect(counted.calls.count { $0 == .fsync } == syncs + 2)
    }

    /// An unsynced file counts as finished until the machine restarts, and for good once a survey has reported it.
    @Test(arguments: [false, true]) func whatIsNotSyncedIsFinishedForThisRunAlone(_ isAskedBefore: Bool) async throws {
        _ = try await whole().sink.publish(
            PublishTerms(existing: .fail, durable: false, length: 5000, modified: 1_234_567_890))
        if isAskedBefore {
            guard case .finished = try storage.survey(directory.place()) else {
                Issue.record("not known as finished")
                return
            }
        }
        let later = try FileStorage(boot: BootIdentity(high: 2, low: 2)).survey(directory.place())
        switch later {
        case .finished: #expect(isAskedBefore)
        case .occupied: #expect(!isAskedBefore)
        default: Issue.record("\(later)")
        }
    }

    @Test func whatIsThereIsTreatedAsAsked() async throws {
        directory["file"] = [7]
        let error = await #expect(throws: TowlineError.self) { try await publish(try whole(), .fail) }
        #expect(error?.code == .destinationExists)
        #expect(directory.names == ["file", "file.tow", "file.tow-journal"])

        let kept = try #require(try storage.unfinished(directory.place()))
        #expect(kept.claims == ByteRangeSet([ByteRange(0, 5000)]))
        #expect(try await publish(kept, .rename).path == directory.path + "/file (1)")
        #expect(directory["file (1)"] == pattern(0..<5000) && directory["file"] == [7])

        let skipped = PublishedFile(path: directory.path + "/file", length: 1, isForeign: true)
        #expect(try await publish(try whole(), .skip) == skipped)
        #expect(directory.names == ["file", "file (1)"] && directory["file"] == [7])

        _ = try await publish(try whole(), .overwrite)
        #expect(directory["file"] == pattern(0..<5000))
    }

    @Test(arguments: [0o600, 0o755, 0o640, 0o444, 0o4755] as [UInt32])
    func aReplacedFileKeepsItsPermissions(_ mode: UInt32) async throws {
        directory["file"] = [7]
        #expect(chmod(directory.path + "/file", mode) == 0)
        let part = try whole()
        #expect(directory.mode("file.tow") == 0o600)
        _ = try await publish(part, .overwrite)
        #expect(directory["file"] == pattern(0..<5000))
        #expect(directory.mode("file") == mode & 0o777, "never setuid")
    }

    @Test func aNewFileHasThePermissionsOfTheUmask() async throws {
        let mask = umask(0)
        umask(mask)
        _ = try await publish(try whole(), .fail)
        #expect(directory.mode("file") == 0o666 & ~mask)
    }

    /// acl(5): user::rw-, group::r--, mask::r--, other::---. The umask does not apply to them.
    @Test func theDefaultACLOfTheDirectoryDecides() async throws {
        var acl: [UInt8] = [2, 0, 0, 0]
        for (tag, rights) in [(0x01, 6), (0x04, 4), (0x10, 4), (0x20, 0)] as [(UInt8, UInt8)] {
            acl += [tag, 0, rights, 0, 255, 255, 255, 255]
        }
        let folder = open(directory.path, O_RDONLY)
        defer { close(folder) }
        #expect(towline_fsetxattr(folder, "system.posix_acl_default", acl, acl.count) == 0)
        _ = try await publish(try whole(), .fail)
        #expect(directory.mode("file") == 0o640)
    }

    /// The file appears between the check of the name and the rename.
    @Test func aFileThatCameAtTheLastMomentIsSkipped() async throws {
        let faulty = FaultySyscall()
        let part = try whole(FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1)))
        let path = directory.path + "/file"
        faulty.setPlan { call, _ in
            if call == .rename { close(open(path, O_WRONLY | O_CREAT, 0o600)) }
            return nil
        }
        let file = try await publish(part, .skip)
        #expect(file == PublishedFile(path: path, length: 0, isForeign: true))
        #expect(directory.names == ["file"] && directory["file"] == [])
    }

    @Test func theNumberGoesBeforeTheLastExtension() {
        #expect(PlaceNames(final: "a.tar.gz").numbered(2) == "a.tar (2).gz")
        #expect(PlaceNames(final: "a").numbered(1) == "a (1)")
        #expect(PlaceNames(final: ".bashrc").numbered(1) == ".bashrc (1)")
    }

    /// NFS and others cannot rename without replacing; FAT cannot link either.
    @Test(arguments: [false, true])
    func withoutNoreplaceTheNameIsStillNotTakenAway(_ canLink: Bool) async throws {
        let faulty = FaultySyscall()
        let storage = FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1))
        let part = try whole(storage)
        let renames = faulty.calls.count { $0 == .rename }
        faulty.setPlan { call, _ in
            switch call {
            case .rename where faulty.calls.count { $0 == .rename } == renames + 1: .error(EINVAL)
            case .link where !canLink: .error(EPERM)
            default: nil
            }
        }
        directory["file"] = [7]
        await #expect(throws: TowlineError.self) { try await publish(part, .fail) }
        #expect(directory["file"] == [7])
        directory["file"] = nil
        faulty.setPlan { call, _ in
            switch call {
            case .rename where faulty.calls.count { $0 == .rename } == renames + 2: .error(EINVAL)
            case .link where !canLink: .error(EPERM)
            default: nil
            }
        }
        _ = try await publish(part, .fail)
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
    }

    /// Shared folders of some virtual machines cannot sync a single directory.
    @Test func whereDirectoriesAreNotSyncedAloneEverythingIs() async throws {
        let faulty = FaultySyscall { call, _ in call == .fsync ? .error(EINVAL) : nil }
        let storage = FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1))
        let part = try whole(storage)
        try await part.journal?.checkpoint(part.sink)
        #expect(part.journal?.durable.count == 5000)
        _ = try await publish(part, .fail)
        #expect(directory["file"] == pattern(0..<5000) && faulty.calls.contains(.syncfs))
        guard case .finished = try storage.survey(directory.place()) else {
            Issue.record("it is not found finished")
            return
        }
    }

    /// Row 89: the sync of the directory fails after the rename. The file keeps its name, the error states the cause,
    /// and no later run reports the file as finished before the directory is synced.
    @Test(arguments: [false, true])
    func aNameThatIsNotDurableIsNoSuccess(_ journaled: Bool) async throws {
        let faulty = FaultySyscall()
        let storage = FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1))
        let part = try whole(storage, journaled: journaled)
        // The part file is synced first, then the directory.
        let syncs = faulty.calls.count { $0 == .fsync }
        faulty.setPlan { call, _ in
            call == .fsync && faulty.calls.count { $0 == .fsync } > syncs + 1 ? .error(EIO) : nil
        }
        let error = await #expect(throws: TowlineError.self) { try await publish(part, .fail) }
        part.sink.close()
        #expect(error?.code == .diskFailure && error?.systemError == EIO)
        #expect(error?.message.contains("file is complete, but its directory entry") == true)
        #expect(directory["file"] == pattern(0..<5000))
        #expect(directory.names == (journaled ? ["file", "file.tow-journal"] : ["file"]))

        #expect(throws: TowlineError.self) { try storage.survey(directory.place()) }
        #expect(directory["file"] == pattern(0..<5000))
        faulty.setPlan { _, _ in nil }
        guard case .finished = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(faulty.calls.count { $0 == .fsync } > syncs + 3)
        #expect(directory.names == ["file"])
    }

    @Test(arguments: [false, true])
    func twoNamesOfOneFileArePutRight(_ journaled: Bool) throws {
        let part = try whole(journaled: journaled)
        link(directory.path + "/file.tow", directory.path + "/file")
        part.sink.close()
        let survey = try storage.survey(directory.place())
        #expect(directory.names == ["file"] && directory["file"] == pattern(0..<5000))
        guard case .finished(_, let source) = survey else {
            #expect(!journaled)
            return
        }
        #expect(source == "http://example.test/file?a=1")
    }

    @Test(arguments: ["file", "file (1)"])
    func aCrashAfterTheRenameIsPickedUp(_ name: String) throws {
        if name != "file" { directory["file"] = [7] }
        let part = try whole()
        part.sink.close()
        rename(directory.path + "/file.tow", directory.path + "/" + name)
        guard case .finished(let file, let source) = try storage.survey(directory.place()) else {
            Issue.record("not finished")
            return
        }
        #expect(file.path == directory.path + "/" + name)
        #expect(source == "http://example.test/file?a=1")
        #expect(!directory.names.contains("file.tow-journal"))
    }

    @Test func aFileThatIsNotWholeIsNotPublished() async throws {
        let part = try storage.make(directory.place(), length: 5000)
        try part.fill(0..<4000)
        await #expect(throws: TowlineError.self) { try await part.sink.publish(.plain(5000)) }
        #expect(directory.names == ["file.tow", "file.tow-journal"])
    }

    @Test func aPartThatWasDeletedOrReplacedIsNoticed() throws {
        let part = try whole()
        try part.sink.checkIntact()
        rename(directory.path + "/file.tow", directory.path + "/moved")
        directory["file.tow"] = [1]
        #expect(throws: TowlineError.self) { try part.sink.checkIntact() }
        directory["moved"] = nil
        let error = #expect(throws: TowlineError.self) { try part.sink.checkIntact() }
        #expect(error?.message.contains("deleted") == true)
    }

    @Test func wrongBytesAreSetAside() throws {
        #expect(try whole().sink.setAside() == directory.path + "/file.tow-bad")
        #expect(directory.names == ["file.tow-bad"] && directory["file.tow-bad"] == pattern(0..<5000))
        // Files of other owners, or that were changed, are kept; the wrong bytes get another name beside them.
        directory["file.tow-bad"] = [1, 2, 3]
        for number in 1...2 {
            #expect(try whole().sink.setAside() == directory.path + "/file.tow-bad (\(number))")
        }
        #expect(directory["file.tow-bad"] == [1, 2, 3] && directory["file.tow-bad (1)"] == pattern(0..<5000))
    }

    /// The wrong bytes of each run of the same download replace those of the run before; those of another URL have
    /// their own file.
    @Test func wrongBytesOfTheSameDownloadTakeTheirPlace() throws {
        for _ in 0..<3 {
            #expect(try whole().sink.setAside() == directory.path + "/file.tow-bad")
            #expect(directory.names == ["file.tow-bad"] && directory["file.tow-bad"] == pattern(0..<5000))
        }
        // The bytes do not count as a finished file under any name.
        rename(directory.path + "/file.tow-bad", directory.path + "/file")
        #expect(try !storage.isPublished(directory.place(), from: ["http://example.test/file?a=1"], length: 5000))
        rename(directory.path + "/file", directory.path + "/file.tow-bad")
        var other = DownloadRecord.sample(length: 5000)
        other.source = "http://example.test/other"
        let part = try storage.create(directory.place(), record: other, terms: CreateTerms(journaled: true))
        try part.fill(0..<5000)
        #expect(try part.sink.setAside() == directory.path + "/file.tow-bad (1)")
        #expect(directory.names == ["file.tow-bad", "file.tow-bad (1)"])
    }

    @Test func aChangedFileGetsANewPartFile() throws {
        let old = try whole()
        let next = try storage.replace(
            old, place: directory.place(), record: .sample(length: 5000, generation: 2),
            terms: CreateTerms(journaled: true))
        #expect(next.claims.isEmpty)
        #expect(throws: TowlineError.self) { try old.fill(0..<10) }
        try next.fill(0..<100, seed: 0x40)
        next.sink.close()
        let again = try #require(try storage.unfinished(directory.place()))
        #expect(again.claims == ByteRangeSet([ByteRange(0, 100)]) && again.journal?.record.generation == 2)
        #expect(directory.names == ["file.tow", "file.tow-journal"])
    }

    @Test func checksumsAreComparedInOneReading() async throws {
        let part = try whole()
        let good = [Checksum.Algorithm.md5, .sha1, .sha256, .sha512, .crc32c].compactMap {
            Checksum(algorithm: $0, value: MessageDigest.value(of: pattern(0..<5000), $0))
        }
        #expect(good.count == 5)
        #expect(try await part.sink.verify(good, length: 5000).isEmpty)
        let bad = good.compactMap {
            Checksum(algorithm: $0.algorithm, value: $0.value.dropLast() + [($0.value.last ?? 0) ^ 1])
        }
        #expect(try await part.sink.verify(good + bad, length: 5000).map(\.expected) == bad)
        await #expect(throws: TowlineError.self) { try await part.sink.verify(good, length: 5001) }
    }
}
