import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests file systems that lack a call (`docs/crash-safety.md`): the file is published, with one notice if it matters.
@Suite struct LackingCallTests {
    struct Lack: Sendable, CustomTestStringConvertible {
        let call: FaultySyscall.Call
        let number: Int32
        /// A part of the notice; `nil` if the user gets no notice.
        var notice: String?
        var testDescription: String { "\(call) \(number)" }
    }

    static let lacks = [
        Lack(call: .lock, number: ENOSYS, notice: "cannot lock"),
        Lack(call: .lock, number: EOPNOTSUPP, notice: "cannot lock"),
        Lack(call: .lock, number: ENOLCK, notice: "cannot lock"),
        Lack(call: .setModified, number: EPERM, notice: "modification times"),
        Lack(call: .setModified, number: EACCES, notice: "modification times"),
        Lack(call: .setModified, number: EINVAL, notice: "modification times"),
        Lack(call: .fsync, number: EOPNOTSUPP, notice: "cannot sync"),
        Lack(call: .fsync, number: EPERM, notice: "cannot sync"),
        Lack(call: .fdatasync, number: ENOSYS), Lack(call: .fdatasync, number: EOPNOTSUPP),
        Lack(call: .ftruncate, number: EPERM), Lack(call: .ftruncate, number: ENOSYS),
        Lack(call: .fallocate, number: EPERM), Lack(call: .fallocate, number: ENOSYS),
        Lack(call: .setMode, number: EPERM), Lack(call: .setAttribute, number: EOPNOTSUPP),
        Lack(call: .getAttribute, number: ENOTSUP), Lack(call: .getAttribute, number: ENOSYS),
        Lack(call: .space, number: ENOSYS), Lack(call: .startWriteback, number: ENOSYS),
        Lack(call: .names, number: EACCES), Lack(call: .splice, number: EOPNOTSUPP),
    ]

    private let directory = ScratchDirectory()
    private let length = 2 << 20

    private func publish(_ storage: FileStorage, journaled: Bool = true) async throws {
        let part = try storage.make(directory.place(), length: Int64(length), journaled: journaled)
        try part.fill(0..<length)
        try await part.journal?.checkpoint(part.sink)
        _ = try await part.sink.publish(
            PublishTerms(existing: .fail, durable: true, length: Int64(length), modified: 1_234_567_890))
    }

    @Test(arguments: lacks, [true, false])
    func theFileIsPublished(_ lack: Lack, _ journaled: Bool) async throws {
        let storage = FileStorage(
            syscall: FaultySyscall { call, _ in call == lack.call ? .error(lack.number) : nil },
            boot: BootIdentity(high: 1, low: 1))
        try await publish(storage, journaled: journaled)
        #expect(directory["file"] == pattern(0..<length) && directory.names == ["file"])
        let notices = storage.takeNotices(inDirectory: directory.path)
        #expect(notices.count == (lack.notice == nil ? 0 : 1), "\(notices)")
        if let word = lack.notice { #expect(notices.first?.contains(word) == true, "\(notices)") }
        // The next download in the same directory reports no notice.
        directory["file"] = nil
        try await publish(storage, journaled: journaled)
        #expect(storage.takeNotices(inDirectory: directory.path).isEmpty)
    }

    /// An error that does not mean a missing call remains a failure.
    @Test(arguments: [
        (FaultySyscall.Call.fsync, EIO), (.fdatasync, EIO), (.setModified, EIO), (.lock, EIO), (.fallocate, ENOSPC),
    ])
    func aRealFailureIsAnError(_ call: FaultySyscall.Call, _ number: Int32) async throws {
        let storage = FileStorage(
            syscall: FaultySyscall { made, _ in made == call ? .error(number) : nil },
            boot: BootIdentity(high: 1, low: 1))
        await #expect(throws: TowlineError.self) { try await publish(storage) }
        #expect(directory["file"] == nil)
    }

    /// A drop box: the directory is opened only for its names. The calls are refused here, because root may read any
    /// directory.
    @Test func aDirectoryThatCannotBeRead() throws {
        let faulty = FaultySyscall { call, index in
            switch call {
            case .openat: index == 0 ? .error(EACCES) : nil
            case .names: .error(EACCES)
            // All disks of the machine.
            case .syncAll: .error(0)
            default: nil
            }
        }
        let shortfalls = Shortfalls()
        let folder = try Folder(directory.path, syscall: faulty, shortfalls: shortfalls)
        let file = try #require(try folder.createPart("file"))
        try file.write([1, 2, 3], at: 0)
        #expect(try folder.rename("file", to: "other") && directory.names == ["other"])
        #expect(try folder.status(of: "other")?.size == 3)
        #expect(throws: TowlineError.self) { try folder.names() }
        // The kernel syncs no file that was opened with O_PATH.
        try folder.descriptor.synchronizeAll()
        #expect(faulty.calls.suffix(3) == [.fsync, .syncfs, .syncAll])
        let notices = shortfalls.takeNotices(of: directory.path)
        #expect(notices.count == 1 && notices.first?.contains("cannot be read") == true, "\(notices)")
    }

    /// The journal of a finished download claims no bytes, so a journal that remains is not a failure.
    @Test func aJournalThatCannotBeRemoved() async throws {
        let storage = FileStorage(
            syscall: FaultySyscall { call, _ in call == .unlink ? .error(EPERM) : nil },
            boot: BootIdentity(high: 1, low: 1))
        try await publish(storage)
        #expect(directory["file"] == pattern(0..<length))
        #expect(storage.takeNotices(inDirectory: directory.path).first?.contains("journal file") == true)
        guard case .finished = try FileStorage(boot: BootIdentity(high: 1, low: 1)).survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
    }

    // MARK: Long names

    /// The names of an unfinished download are shortened, and found again.
    @Test(arguments: [240, 251, 255]) func aLongNameIsResumed(_ count: Int) async throws {
        let place = directory.place(String(repeating: "n", count: count - 4) + ".iso")
        let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))
        let part = try storage.make(place, length: Int64(length))
        try part.fill(0..<length)
        part.sink.close()
        #expect(directory.names.count == 2 && directory.names.allSatisfy { $0.utf8.count <= 255 })
        // The journal's name does not contain the whole final name.
        #expect(storage.find(source: "http://example.test/file?a=1", inDirectory: directory.path) == nil)
        let again = try #require(try storage.unfinished(place))
        #expect(again.claims.count == Int64(length))
        _ = try await again.sink.publish(.plain(Int64(length)))
        #expect(directory.names == [place.name])
    }

    @Test func longNamesHaveTheirOwnPartFiles() {
        let long = String(repeating: "n", count: 240)
        #expect(PlaceNames(final: long + "a").part != PlaceNames(final: long + "b").part)
        #expect(PlaceNames(final: "a").part == "a.tow")
        #expect(PlaceNames(final: String(repeating: "n", count: 239)).part.utf8.count == 243)
    }

    /// The error comes before the first byte.
    @Test(arguments: [256, 1000]) func aNameThatNoFileSystemTakes(_ count: Int) {
        let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))
        let place = directory.place(String(repeating: "n", count: count))
        let error = #expect(throws: TowlineError.self) { try storage.survey(place) }
        #expect(error?.code == .unusableDestination && error?.systemError == ENAMETOOLONG)
    }
}
