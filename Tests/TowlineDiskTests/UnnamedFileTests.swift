import Glibc
import Synchronization
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests small files that get their first name when they are published, with all bytes written.
@Suite struct UnnamedFileTests {
    let directory = ScratchDirectory()

    private func storage(
        type: Int64 = 0xEF53,
        plan: @escaping @Sendable (FaultySyscall.Call, Int) -> FaultySyscall.Fault? = { _, _ in nil }
    ) -> (FileStorage, FaultySyscall) {
        let faulty = FaultySyscall(plan: plan)
        faulty.setType(type)
        return (FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1), forOneRun: true), faulty)
    }

    private func whole(_ storage: FileStorage, source: String? = nil) throws -> OpenPart {
        var record = DownloadRecord.sample(length: 5000)
        if let source { record.source = source }
        let part = try storage.create(
            directory.place(), record: record,
            terms: CreateTerms(journaled: false, requiresFreeName: true, isAtHand: true))
        try part.fill(0..<5000)
        return part
    }

    private func publish(_ part: OpenPart, _ policy: ExistingPolicy) async throws -> PublishedFile {
        try await part.sink.publish(
            PublishTerms(existing: policy, durable: true, length: 5000, modified: 1_234_567_890))
    }

    @Test func noNameLeadsToItBefore() async throws {
        let (storage, faulty) = storage()
        let part = try whole(storage)
        try #require(faulty.calls.contains(.openUnnamed))
        #expect(directory.names.isEmpty)
        try part.sink.checkIntact()
        let file = try await publish(part, .fail)
        #expect(file == PublishedFile(path: directory.path + "/file", length: 5000))
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
        #expect(!faulty.calls.contains(.rename) && !faulty.calls.contains(.lock))
        guard case .finished = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
    }

    /// The storage syncs the bytes, then sets the name, and then syncs the file with its name, and the directory.
    @Test func itIsSyncedBeforeAndAfter() async throws {
        let (storage, faulty) = storage()
        _ = try await publish(try whole(storage), .fail)
        #expect(faulty.calls.filter { $0 == .fsync || $0 == .name } == [.fsync, .name, .fsync, .fsync])
    }

    /// The file's length is not queried: the written ranges show it.
    @Test(arguments: [0, 4999]) func aByteThatWasNotWrittenIsMissed(_ count: Int) async throws {
        let (storage, _) = storage()
        let part = try storage.create(
            directory.place(), record: .sample(length: 5000),
            terms: CreateTerms(journaled: false, requiresFreeName: true, isAtHand: true))
        try part.fill(0..<count)
        let error = await #expect(throws: TowlineError.self) { try await publish(part, .fail) }
        #expect(error?.code == .diskFailure && error?.message.contains("is incomplete") == true)
        #expect(directory["file"] == nil)
    }

    @Test func givenUpItLeavesNothing() throws {
        let (storage, _) = storage()
        let part = try whole(storage)
        part.sink.discard()
        #expect(directory.names.isEmpty)
    }

    /// Another process took the name meanwhile.
    @Test(arguments: ExistingPolicy.allCases) func theNameWasTaken(_ policy: ExistingPolicy) async throws {
        let (storage, _) = storage()
        let part = try whole(storage)
        directory["file"] = [1, 2, 3]
        switch policy {
        case .fail:
            let error = await #expect(throws: TowlineError.self) { try await publish(part, policy) }
            #expect(error?.code == .destinationExists)
            part.sink.close()
            // The error message says that the part file is kept.
            #expect(directory["file"] == [1, 2, 3] && directory["file.tow"] == pattern(0..<5000))
        case .skip:
            #expect(try await publish(part, policy).isForeign)
            #expect(directory["file"] == [1, 2, 3] && directory.names == ["file"])
        case .overwrite, .update:
            #expect(try await !publish(part, policy).isForeign)
            #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
        case .rename:
            #expect(try await publish(part, policy).path == directory.path + "/file (1)")
            #expect(directory["file"] == [1, 2, 3] && directory["file (1)"] == pattern(0..<5000))
        }
    }

    /// Two processes run the same list: the second finds that the file is finished, under any name it would have got.
    @Test(arguments: [ExistingPolicy.fail, .rename]) func theSameWasPublishedMeanwhile(_ policy: ExistingPolicy)
        async throws
    {
        let (storage, _) = storage()
        let parts = try [whole(storage), whole(storage)]
        for part in parts {
            let file = try await publish(part, policy)
            #expect(file == PublishedFile(path: directory.path + "/file", length: 5000))
        }
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
    }

    enum Other: CaseIterable {
        case hasOtherBytes, isSomebodysOwn, cameFromElsewhere
    }

    /// A file with other bytes, a user's own file, or a file of another URL is not this download.
    @Test(arguments: Other.allCases) func anotherWasPublishedMeanwhile(_ other: Other) async throws {
        let (storage, _) = storage()
        let first = try whole(storage, source: other == .cameFromElsewhere ? "http://example.test/other" : nil)
        let second = try whole(storage)
        switch other {
        case .hasOtherBytes:
            try second.fill(4999..<5000, seed: 9)
            _ = try await publish(first, .fail)
        case .cameFromElsewhere: _ = try await publish(first, .fail)
        case .isSomebodysOwn:
            first.sink.discard()
            directory["file"] = pattern(0..<5000)
        }
        let error = await #expect(throws: TowlineError.self) { try await publish(second, .fail) }
        #expect(error?.code == .destinationExists)
        second.sink.close()
        #expect(directory["file"] == pattern(0..<5000) && directory["file.tow"] != nil)
    }

    // MARK: Published at once

    private func makeAtOnce(
        _ storage: FileStorage, _ body: SomeBytes = SomeBytes(pattern(0..<5000)), durable: Bool = true
    ) async throws -> SmallFileOutcome {
        try await storage.publishAtOnce(
            try SmallFile(
                body: body, source: DownloadRecord.sample(length: 5000).source, modified: 1_234_567_890,
                durable: durable), at: directory.place())
    }

    /// A file published at once equals one that was published in steps, its mark and the number of syncs included.
    @Test func madeAtOnce() async throws {
        let (storage, faulty) = storage()
        let file = PublishedFile(path: directory.path + "/file", length: 5000)
        #expect(try await makeAtOnce(storage) == .published(file))
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
        #expect(faulty.calls.filter { $0 == .fsync || $0 == .name } == [.fsync, .name, .fsync, .fsync])
        guard case .finished(let file, let source) = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(file.modified == 1_234_567_890 && source == DownloadRecord.sample(length: 5000).source)
        #expect(!storage.seemsVacant(directory.place()))
    }

    /// Without durability the file counts as finished until the machine restarts.
    @Test func madeAtOnceWithoutSync() async throws {
        let (storage, faulty) = storage()
        let file = PublishedFile(path: directory.path + "/file", length: 5000)
        #expect(try await makeAtOnce(storage, durable: false) == .published(file))
        #expect(!faulty.calls.contains(.fsync) && !faulty.calls.contains(.syncfs))
        let later = FileStorage(syscall: SystemCalls(), boot: BootIdentity(high: 2, low: 2))
        guard case .occupied = try later.survey(directory.place()) else {
            Issue.record("known as finished after the machine's end")
            return
        }
    }

    /// A file under the name, or a part file for it, is left unchanged, and no other file is left.
    @Test(arguments: ["file", "file.tow"]) func notAtOnceWhereSomethingIs(_ name: String) async throws {
        let (storage, _) = storage()
        directory[name] = [1, 2, 3]
        #expect(try await makeAtOnce(storage) == .declined)
        #expect(directory[name] == [1, 2, 3] && directory.names == [name])
    }

    /// A file's bytes are released while the disk is synced; if the name is taken meanwhile, they are read back.
    @Test func itsBytesAreReleasedBeforeItsSync() async throws {
        let body = SomeBytes(pattern(0..<5000))
        let heldAtSync = Mutex([Int]())
        let (storage, _) = storage { call, _ in
            if call == .fsync { heldAtSync.withLock { $0.append(body.held.count) } }
            return call == .name ? .error(EEXIST) : nil
        }
        #expect(try await makeAtOnce(storage, body) == .declined)
        #expect(heldAtSync.withLock { $0 } == [0] && body.held == pattern(0..<5000))
        #expect(directory.names.isEmpty)
    }

    /// After a failed sync the bytes on the disk are unreliable: they are not read back.
    @Test func itsBytesAreLostWithItsSync() async throws {
        let body = SomeBytes(pattern(0..<5000))
        let (storage, _) = storage { call, _ in call == .fsync ? .error(EIO) : nil }
        #expect(try await makeAtOnce(storage, body) == .lost)
        #expect(body.held.isEmpty && directory.names.isEmpty)
    }

    /// Btrfs does not sync files without a name.
    @Test func notAtOnceEverywhere() async throws {
        let (storage, faulty) = storage(type: 0x9123_683E)
        #expect(try await makeAtOnce(storage) == .declined)
        #expect(directory.names.isEmpty && !faulty.calls.contains(.openUnnamed))
    }

    /// Another file took the name before this one was created: the caller decides.
    @Test func theNameIsTakenAlready() throws {
        let (storage, _) = storage()
        directory["file"] = [1, 2, 3]
        let error = #expect(throws: TowlineError.self) { try whole(storage) }
        #expect(error?.code == .destinationExists)
        #expect(directory.names == ["file"])
    }

    /// Without the right to link, a copy is published, and the next file has a name from the beginning.
    @Test(arguments: [EPERM, ENOSYS, EOPNOTSUPP], [ExistingPolicy.fail, .overwrite])
    func withoutTheRightToLink(_ number: Int32, _ policy: ExistingPolicy) async throws {
        let (storage, faulty) = storage { call, _ in call == .name ? .error(number) : nil }
        _ = try await publish(try whole(storage), policy)
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
        guard case .finished(let file, _) = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(file.modified == 1_234_567_890)
        directory["file"] = nil
        _ = try await publish(try whole(storage), policy)
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
        #expect(faulty.calls.count { $0 == .openUnnamed } == 1)
    }

    /// The copy does not replace a file that appeared meanwhile.
    @Test func theCopyLeavesAnotherFile() async throws {
        let (storage, _) = storage { call, _ in call == .name ? .error(EPERM) : nil }
        let part = try whole(storage)
        directory["file"] = [1]
        await #expect(throws: TowlineError.self) { try await publish(part, .fail) }
        #expect(directory["file"] == [1])
    }

    /// Another process began this download a moment ago: its part file is not ignored.
    @Test func aPartFileThatCameMeanwhileIsFound() throws {
        let (storage, _) = storage()
        directory["file.tow"] = []
        let error = #expect(throws: TowlineError.self) { try whole(storage) }
        #expect(error?.code == .destinationBusy)
        #expect(directory.names == ["file.tow"])
    }

    /// The same if the part file appears later and its name is needed to replace the file under the final name.
    @Test func aPartFileThatCameLaterIsLeft() async throws {
        let (storage, _) = storage()
        let part = try whole(storage)
        directory["file.tow"] = [7]
        directory["file"] = [1]
        let error = await #expect(throws: TowlineError.self) { try await publish(part, .overwrite) }
        #expect(error?.code == .destinationBusy)
        #expect(directory["file.tow"] == [7] && directory["file"] == [1])
        let replaced = #expect(throws: TowlineError.self) {
            try storage.replace(
                part, place: directory.place(), record: .sample(length: 5000, generation: 2),
                terms: CreateTerms(journaled: false))
        }
        #expect(replaced?.code == .destinationBusy)
        #expect(directory["file.tow"] == [7])
    }

    @Test func anotherGenerationTakesItsPlace() async throws {
        let (storage, _) = storage()
        let next = try storage.replace(
            try whole(storage), place: directory.place(), record: .sample(length: 5000, generation: 2),
            terms: CreateTerms(journaled: false))
        #expect(directory.names == ["file.tow"])
        try next.fill(0..<5000)
        _ = try await publish(next, .fail)
        #expect(directory["file"] == pattern(0..<5000) && directory.names == ["file"])
    }

    @Test func wrongBytesAreKeptUnderANameOfTheirOwn() throws {
        let (storage, _) = storage()
        #expect(try whole(storage).sink.setAside() == directory.path + "/file.tow-bad")
        #expect(directory.names == ["file.tow-bad"])
    }

    /// A file has its usual name if an unnamed one cannot be created, or would not last.
    @Test(
        arguments: [(Int64(0x9123_683E), Int32(0)), (0x6969, 0), (0xEF53, EOPNOTSUPP), (0xEF53, EISDIR)]
            as [(Int64, Int32)])
    func elsewhereItHasAName(_ type: Int64, _ error: Int32) async throws {
        let (storage, faulty) = storage(type: type) { call, _ in
            call == .openUnnamed && error != 0 ? .error(error) : nil
        }
        for number in 1...2 {
            let place = directory.place("file\(number)")
            let part = try storage.create(
                place, record: .sample(length: 5000, name: place.name),
                terms: CreateTerms(journaled: false, requiresFreeName: true, isAtHand: true))
            try part.fill(0..<5000)
            #expect(directory.names.contains("file\(number).tow"))
            _ = try await publish(part, .fail)
        }
        #expect(directory.names.sorted() == ["file1", "file2"])
        // An operation that was refused once is not tried again.
        #expect(faulty.calls.count { $0 == .openUnnamed } == (error == 0 ? 0 : 1))
    }

    /// If the first sync fails, the file gets no name. If the second fails, the file is complete under a name that may
    /// not last.
    @Test(arguments: [1, 2, 3]) func syncsThatFail(_ failing: Int) async throws {
        let (storage, faulty) = storage()
        let part = try whole(storage)
        let before = faulty.calls.count
        faulty.setPlan { [faulty] call, index in
            guard call == .fsync else { return nil }
            let number = faulty.calls[before...index].count { $0 == .fsync }
            return number == failing ? .error(EIO) : nil
        }
        let error = await #expect(throws: TowlineError.self) { try await publish(part, .fail) }
        part.sink.close()
        #expect(error?.code == .diskFailure)
        #expect(directory.names == (failing == 1 ? [] : ["file"]))
        #expect((error?.message.contains("its directory entry is not yet saved")) == (failing > 1))
    }

    /// A file system in memory has nothing to sync, and no call waits.
    @Test func inMemoryNothingIsSynced() async throws {
        let (storage, faulty) = storage(type: 0x0102_1994)
        _ = try await publish(try whole(storage), .fail)
        #expect(directory["file"] == pattern(0..<5000))
        #expect(!faulty.calls.contains(.fsync) && !faulty.calls.contains(.syncfs))
    }

    /// For many files together, all bytes are synced, then all get their names, then everything is synced once more.
    @Test func manyShareTheirSyncs() async throws {
        let (storage, faulty) = storage()
        let parts = try (0..<40).map { number in
            let part = try storage.create(
                directory.place("f\(number)"), record: .sample(length: 5000, name: "f\(number)"),
                terms: CreateTerms(journaled: false, requiresFreeName: true, isAtHand: true))
            try part.fill(0..<5000)
            return part
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for part in parts { group.addTask { _ = try await part.sink.publish(.plain(5000)) } }
            try await group.waitForAll()
        }
        #expect(directory.names.count == 40)
        let calls = faulty.calls.filter { [.fsync, .syncfs, .name].contains($0) }
        let last = try #require(calls.lastIndex(of: .name))
        #expect(last < calls.count - 1, "\(calls)")
        #expect(calls.first != .name)
    }
}
