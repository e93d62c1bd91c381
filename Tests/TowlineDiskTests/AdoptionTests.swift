import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests files that the user supplied and a checksum proves.
@Suite struct AdoptionTests {
    let directory = ScratchDirectory()
    let faulty = FaultySyscall()
    private static let source = "http://example.test/file?a=1"
    private static let bytes = pattern(0..<3_000_000)

    private var storage: FileStorage { FileStorage(syscall: faulty, boot: BootIdentity(high: 1, low: 1)) }

    private func checksum(of bytes: [UInt8] = bytes) throws -> Checksum {
        let digest = MessageDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return try #require(Checksum(algorithm: .sha256, value: digest.finish(.sha256)))
    }

    private func adopt(source: String = source) async throws -> PublishedFile? {
        let proof = try await storage.prove(directory.place(), source: source, checksum: try checksum())
        guard case .proven(let file) = proof else { return nil }
        return file
    }

    /// The bytes are durable before the mark, and the mark before the call returns.
    @Test func whatIsProvenIsAFinishedDownload() async throws {
        directory["file"] = Self.bytes
        var before = stat()
        stat(directory.path + "/file", &before)
        guard case .occupied(let other?) = try storage.survey(directory.place()), other.length == 3_000_000 else {
            Issue.record("not something else")
            return
        }
        let file = try #require(try await adopt())
        #expect(file.path == directory.path + "/file" && file.length == 3_000_000)
        #expect(
            faulty.calls.filter { [.fsync, .setAttribute].contains($0) } == [.fsync, .setAttribute, .fsync, .fsync])
        guard case .finished(let found, let source) = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(found == file && source == Self.source)
        #expect(!(source == "http://example.test/other"))
        // A file that the user supplied is not removed as if it had been published here.
        #expect(try !storage.isPublished(directory.place(), from: [Self.source], length: 3_000_000))
        var after = stat()
        stat(directory.path + "/file", &after)
        #expect(after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec)
        #expect(directory["file"] == Self.bytes && directory.names == ["file"])
    }

    enum Another: CaseIterable {
        case byte, longer, shorter, nothing, writtenMeanwhile, replacedMeanwhile, cutMeanwhile
    }

    @Test(arguments: Another.allCases) func whatIsNotProvenIsLeftAsItIs(_ another: Another) async throws {
        let path = directory.path + "/file"
        var bytes = Self.bytes
        switch another {
        case .byte: bytes[2_000_000] ^= 1
        case .longer: bytes.append(0)
        case .shorter: bytes.removeLast()
        case .writtenMeanwhile, .replacedMeanwhile:
            let (directory, isReplaced) = (directory.path, another == .replacedMeanwhile)
            faulty.setPlan { call, _ in
                // The file's bytes have been read.
                guard call == .fsync else { return nil }
                if isReplaced {
                    rename(directory + "/other", path)
                } else {
                    let file = open(path, O_WRONLY)
                    pwrite(file, [7], 1, 0)
                    close(file)
                }
                return nil
            }
        case .cutMeanwhile:
            faulty.setPlan { call, _ in
                if call == .pread { truncate(path, 100) }
                return nil
            }
        case .nothing: break
        }
        if another != .nothing {
            directory["other"] = bytes
            directory["file"] = bytes
        }
        #expect(try await adopt() == nil)
        #expect(!faulty.calls.contains(.setAttribute))
        if another == .nothing { #expect(directory.names.isEmpty) }
    }

    /// The mark names the URL of a finished download, and adoption for another URL keeps it.
    @Test func aFinishedDownloadOfAnotherURLKeepsItsMark() async throws {
        directory["file"] = Self.bytes
        _ = try await adopt(source: "http://example.test/other")
        #expect(try await adopt() != nil)
        guard case .finished(_, let source) = try storage.survey(directory.place()) else {
            Issue.record("not known as finished")
            return
        }
        #expect(source == "http://example.test/other" && !(source == Self.source))
    }

    /// Links are not followed, and the error states why a file cannot be used.
    @Test(arguments: ["link", "folder"]) func whatIsNoFileIsNotRead(_ kind: String) async throws {
        let path = directory.path + "/file"
        if kind == "link" {
            directory["other"] = Self.bytes
            symlink("other", path)
        } else {
            mkdir(path, 0o755)
        }
        guard case .occupied(nil) = try storage.survey(directory.place()) else {
            Issue.record("a file")
            return
        }
        await #expect(throws: TowlineError.self) { try await adopt() }
        #expect(!faulty.calls.contains(.pread))
        remove(path)
    }

    @Test func whatCannotBeReadIsNoProofEitherWay() async throws {
        directory["file"] = Self.bytes
        faulty.setPlan { call, _ in call == .pread ? .error(EIO) : nil }
        let error = await #expect(throws: TowlineError.self) { try await adopt() }
        #expect(error?.code == .diskFailure, "\(String(describing: error))")
    }

    @Test func whatIsNotDurableIsNotSaidToBeThere() async throws {
        directory["file"] = Self.bytes
        faulty.setPlan { call, _ in call == .fsync ? .error(EIO) : nil }
        await #expect(throws: TowlineError.self) { try await adopt() }
        faulty.setPlan { _, _ in nil }
        guard case .occupied = try storage.survey(directory.place()) else {
            Issue.record("marked, and not synced")
            return
        }
    }

    /// Reading ends when the task is cancelled.
    @Test func nobodyReadsOnForATaskThatWasCancelled() async throws {
        directory["file"] = [0]
        #expect(truncate(directory.path + "/file", 1 << 40) == 0)
        let (storage, place, sum) = (storage, directory.place(), try checksum())
        let reading = Task { () async -> TowlineError? in
            do throws(TowlineError) {
                _ = try await storage.prove(place, source: Self.source, checksum: sum)
                return nil
            } catch {
                return error
            }
        }
        while faulty.calls.count(where: { $0 == .pread }) < 3 { await Task.yield() }
        reading.cancel()
        #expect(await reading.value?.code == .cancelled)
    }
}
