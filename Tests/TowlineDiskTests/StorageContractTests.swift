import Glibc
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

@testable import TowlineDisk

/// Guarantees of `Storage`, checked on the real file system and on the storage in memory that the engine tests use.
@Suite("The contract of a storage") struct StorageContractTests {
    enum Disk: CaseIterable { case files, memory }

    /// A storage with access to its published files.
    private struct Bench {
        let storage: any Storage
        let place: Place
        /// Keeps the directory.
        let scratch = ScratchDirectory()
        let put: ([UInt8], String) -> Void
        let file: (String) -> [UInt8]?

        init(_ disk: Disk) {
            let directory = scratch.path
            place = Place(directory: directory, name: "file")
            switch disk {
            case .files:
                storage = FileStorage()
                put = { [scratch] in scratch[$1] = $0 }
                file = { [scratch] in scratch[$0] }
            case .memory:
                let memory = MemoryStorage()
                storage = memory
                put = { memory.put(MemoryStorage.File(bytes: $0), at: directory + "/" + $1) }
                file = { memory.files[directory + "/" + $0]?.bytes }
            }
        }

        func create(
            length: Int64 = 10_000, journaled: Bool = true, isFree: Bool = false, name: String = "file"
        ) throws -> OpenPart {
            try storage.create(
                Place(directory: place.directory, name: name), record: .sample(length: length, name: name),
                terms: CreateTerms(journaled: journaled, requiresFreeName: isFree))
        }

        /// A published file of `pattern`.
        func publish(_ terms: PublishTerms, name: String = "file") async throws -> PublishedFile {
            let part = try create(length: terms.length, name: name)
            try part.fill(0..<Int(terms.length))
            return try await part.sink.publish(terms)
        }

        /// Replaces a part file, which becomes the earlier one.
        func replaceKeeping(_ part: OpenPart, generation: UInt32) throws -> OpenPart {
            var terms = CreateTerms(journaled: true)
            terms.keepsReplaced = true
            return try storage.replace(
                part, place: place, record: .sample(length: 10_000, generation: generation), terms: terms)
        }

        func unfinished() throws -> OpenPart {
            guard case .unfinished(let part) = try storage.survey(place) else {
                throw TowlineError(.diskFailure, "nothing unfinished")
            }
            return part
        }
    }

    private static let source = DownloadRecord.sample(length: nil).source

    private func code(_ body: () async throws -> Void) async -> TowlineError.Code? {
        do { try await body() } catch { return (error as? TowlineError)?.code }
        return nil
    }

    @Test(arguments: Disk.allCases) func whatIsMarkedIsThereTheNextTime(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let part = try bench.create()
        try part.fill(0..<3000)
        try part.fill(5000..<6000)
        var record = try #require(part.journal?.record)
        record.lacksRanges = true
        try part.journal?.update(record)
        part.sink.close()
        let again = try bench.unfinished()
        #expect(again.claims == ByteRangeSet([ByteRange(0, 3000), ByteRange(5000, 6000)]))
        #expect(again.journal?.record == record && again.journal?.durable.isEmpty ?? false)
        #expect(try again.bytes(0..<3000) == pattern(0..<3000))
        try await again.journal?.checkpoint(again.sink)
        #expect(again.journal?.durable == again.claims)
        again.sink.close()
        #expect(bench.storage.find(source: Self.source, inDirectory: bench.place.directory) == bench.place)
        #expect(bench.storage.find(source: Self.source + "x", inDirectory: bench.place.directory) == nil)
    }

    @Test(arguments: Disk.allCases) func onePartIsOneHolders(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let part = try bench.create()
        try part.fill(0..<10)
        #expect(await code { _ = try bench.storage.survey(bench.place) } == .destinationBusy)
        #expect(await code { _ = try bench.create() } == .destinationBusy)
        #expect(!bench.storage.seemsVacant(bench.place))
        part.sink.close()
        let again = try bench.unfinished()
        #expect(await code { _ = try bench.create() } == .destinationBusy)
        again.sink.discard()
        _ = try bench.create()
    }

    @Test(arguments: Disk.allCases) func publishedWholeAndKnown(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let file = try await bench.publish(.plain(10_000))
        #expect(file.path == bench.place.path && file.length == 10_000)
        #expect(bench.file("file") == pattern(0..<10_000))
        guard case .finished(let found, let source) = try bench.storage.survey(bench.place) else {
            Issue.record("not finished")
            return
        }
        #expect(found.length == 10_000 && source == Self.source && !(source == Self.source + "x"))
        #expect(bench.storage.find(source: Self.source, inDirectory: bench.place.directory) == nil)
        #expect(!bench.storage.seemsVacant(bench.place))
    }

    @Test(arguments: Disk.allCases) func aShorterFileIsNotPublished(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let part = try bench.create()
        try part.fill(0..<4000)
        #expect(await code { _ = try await part.sink.publish(.plain(10_000)) } == .diskFailure)
        #expect(bench.file("file") == nil)
        try part.fill(4000..<10_000)
        _ = try await part.sink.publish(.plain(10_000))
        #expect(bench.file("file") == pattern(0..<10_000))
    }

    @Test(arguments: Disk.allCases, ExistingPolicy.allCases)
    func aTakenName(_ disk: Disk, _ existing: ExistingPolicy) async throws {
        let bench = Bench(disk)
        let part = try bench.create(length: 100)
        try part.fill(0..<100)
        bench.put([7], "file")
        let terms = PublishTerms(existing: existing, durable: true, length: 100, modified: nil)
        switch existing {
        case .fail:
            #expect(await code { _ = try await part.sink.publish(terms) } == .destinationExists)
            part.sink.close()
            #expect(try bench.unfinished().claims == ByteRangeSet([ByteRange(0, 100)]))
        case .skip: #expect(try await part.sink.publish(terms).isForeign)
        case .overwrite, .update:
            _ = try await part.sink.publish(terms)
            #expect(bench.file("file") == pattern(0..<100))
            return
        case .rename:
            _ = try await part.sink.publish(terms)
            #expect(bench.file("file (1)") == pattern(0..<100))
        }
        #expect(bench.file("file") == [7])
    }

    @Test(arguments: Disk.allCases) func withdrawnClaimsAreGone(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let part = try bench.create()
        let slot = try #require(try part.journal?.claimSlot(at: 0))
        try pattern(0..<6000).withUnsafeBytes { try part.sink.write($0, at: 0) }
        try slot.mark(upTo: 6000)
        try part.journal?.withdraw(ByteRange(2000, 6000))
        // The slot belongs to bytes that were wrong.
        try slot.mark(upTo: 7000)
        part.sink.close()
        #expect(try bench.unfinished().claims == ByteRangeSet([ByteRange(0, 2000)]))
    }

    @Test(arguments: Disk.allCases) func aReplacementClaimsNothing(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let old = try bench.create()
        try old.fill(0..<5000, seed: 1)
        let part = try bench.storage.replace(
            old, place: bench.place, record: .sample(length: 10_000, generation: 2), terms: CreateTerms(journaled: true)
        )
        #expect(part.claims.isEmpty && part.journal?.written.isEmpty ?? false)
        #expect(await code { _ = try bench.storage.survey(bench.place) } == .destinationBusy)
        try part.fill(5000..<6000)
        part.sink.close()
        let again = try bench.unfinished()
        #expect(again.claims == ByteRangeSet([ByteRange(5000, 6000)]) && again.journal?.record.generation == 2)
    }

    /// The replaced part file is the earlier one until the new one has bytes, and is the present one again without it.
    @Test(arguments: Disk.allCases) func aReplacedPartFileIsKept(_ disk: Disk) async throws {
        let bench = Bench(disk)
        var part = try bench.create()
        try part.fill(0..<5000, seed: 1)
        part = try bench.replaceKeeping(part, generation: 2)
        #expect(part.claims.isEmpty && part.earlier?.count == 5000)
        part.sink.close()
        // A crash before the first byte.
        part = try bench.unfinished()
        #expect(part.journal?.record.generation == 1 && part.earlier == nil)
        #expect(try part.bytes(0..<5000) == pattern(0..<5000, seed: 1))
        part = try bench.replaceKeeping(part, generation: 3)
        try part.fill(0..<100)
        part.sink.close()
        part = try bench.unfinished()
        #expect(part.journal?.record.generation == 3 && part.earlier?.count == 5000)
        // The next one has the second one instead.
        part = try bench.replaceKeeping(part, generation: 4)
        #expect(part.earlier?.count == 100)
        part.sink.discard()
        part = try bench.unfinished()
        #expect(part.journal?.record.generation == 3 && part.claims.count == 100)
        part = try bench.replaceKeeping(part, generation: 5)
        bench.storage.removeEarlier(bench.place)
        part.sink.discard()
        guard case .nothing = try bench.storage.survey(bench.place) else {
            Issue.record("the earlier part file still exists")
            return
        }
        #expect(bench.scratch.names == [])
    }

    /// A crash can leave the earlier part file alone. It is the unfinished download, for every reader.
    @Test func theEarlierPartFileAloneIsTheDownload() throws {
        let directory = ScratchDirectory()
        let storage = FileStorage()
        let terms = CreateTerms(journaled: true)
        let part = try storage.create(directory.place(), record: .sample(length: 4_000_000), terms: terms)
        try part.fill(0..<5000)
        part.sink.close()
        for suffix in ["", "-journal"] {
            let name = directory.path + "/file.tow"
            #expect(rename(name + suffix, name + "-old" + suffix) == 0)
        }
        #expect(try storage.inspect(directory.place()).written.count == 5000)
        #expect(storage.find(source: Self.source, inDirectory: directory.path) == directory.place())
        #expect(JournalReader.finalNames(ofJournalsIn: directory.names) == ["file"])
        guard case .unfinished(let report, nil) = try JournalReader.look(at: directory.path + "/file") else {
            Issue.record("no unfinished download")
            return
        }
        #expect(report.isSamePart)
        #expect(try storage.content(directory.place(), isFinished: false, length: nil).completeLength == 4_000_000)
        #expect(directory.names == ["file.tow-old", "file.tow-old-journal"])
    }

    @Test(arguments: Disk.allCases) func aSmallPartIsForgotten(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let part = try bench.create(journaled: false)
        try part.fill(0..<5000)
        part.sink.close()
        guard case .nothing = try bench.storage.survey(bench.place) else {
            Issue.record("the part file still exists")
            return
        }
        _ = try bench.create()
    }

    @Test(arguments: Disk.allCases) func setAsideAndDiscard(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let wrong = try bench.create(length: 100)
        try wrong.fill(0..<100)
        #expect(try wrong.sink.setAside() == bench.place.path + ".tow-bad")
        wrong.sink.close()
        #expect(bench.file("file.tow-bad") == pattern(0..<100))
        let unwanted = try bench.create(length: 100)
        try unwanted.fill(0..<50)
        unwanted.sink.discard()
        guard case .nothing = try bench.storage.survey(bench.place) else {
            Issue.record("the part file still exists")
            return
        }
    }

    @Test(arguments: Disk.allCases) func smallFilesAtOnce(_ disk: Disk) async throws {
        let bench = Bench(disk)
        func file(_ bytes: [UInt8]) throws -> SmallFile {
            try SmallFile(body: SomeBytes(bytes), source: Self.source, modified: nil, durable: true)
        }
        guard case .published = try await bench.storage.publishAtOnce(file(pattern(0..<500)), at: bench.place) else {
            Issue.record("not published")
            return
        }
        #expect(bench.file("file") == pattern(0..<500))
        #expect(try await bench.storage.publishAtOnce(file([1]), at: bench.place) == .declined)
        #expect(bench.file("file") == pattern(0..<500))
        #expect(await code { _ = try bench.create(isFree: true) } == .destinationExists)
    }

    @Test(arguments: Disk.allCases) func bytesAreJudgedByTheirChecksum(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let right = try #require(
            Checksum(algorithm: .sha256, value: MessageDigest.value(of: pattern(0..<1000), .sha256)))
        let wrong = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32)))
        let part = try bench.create(length: 1000)
        try part.fill(0..<1000)
        #expect(try await part.sink.verify([right], length: 1000).isEmpty)
        #expect(try await part.sink.verify([right, wrong], length: 1000).map(\.expected) == [wrong])
        part.sink.discard()
        bench.put(pattern(0..<1000), "file")
        guard case .refuted(.some) = try await bench.storage.prove(bench.place, source: Self.source, checksum: wrong),
            case .occupied = try bench.storage.survey(bench.place),
            case .proven = try await bench.storage.prove(bench.place, source: Self.source, checksum: right),
            case .finished(_, let source) = try bench.storage.survey(bench.place)
        else {
            Issue.record("a proof, and only a proof, makes it a finished download")
            return
        }
        #expect(source == Self.source)
    }

    @Test(arguments: Disk.allCases) func reading(_ disk: Disk) async throws {
        let bench = Bench(disk)
        let part = try bench.create(length: 300)
        try part.fill(0..<300)
        #expect(try part.bytes(250..<400) == pattern(250..<300))
        _ = try await part.sink.publish(.plain(300))
        #expect(bench.file("file") == pattern(0..<300))
        #expect(await code { try part.fill(0..<10) } == .diskFailure)
    }
}
