import FaultServer
import Foundation
import Testing

/// Another user of the machine must not be able to lock a part file (flock(2)), which would stop the download, or to
/// read it.
@Suite(.enabled(if: getuid() == 0, "only root can start programs of another user"), .timeLimit(.minutes(1)))
struct ForeignLockTests {
    /// Prints for each file the error number of opening it, for each way of opening, and 0 where it was opened and
    /// locked.
    private static let intruder = """
        import fcntl, os, sys
        for path in sys.argv[1:]:
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
                try:
                    fcntl.flock(os.open(path, flags), fcntl.LOCK_EX | fcntl.LOCK_NB)
                    print(0)
                except OSError as error:
                    print(error.errno)
        """

    /// Runs the intruder as the user nobody, and returns what it printed.
    private func intrude(on files: [String]) async throws -> [Int32] {
        let words = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c", Self.intruder]
        let run = try CommandRun(words + files, program: URL(fileURLWithPath: "/usr/bin/setpriv"))
        return try await run.finish().text.split(separator: "\n").compactMap { Int32($0) }
    }

    /// Under every umask, also one that lets everybody read and write new files, and for a part file with the mode that
    /// older versions gave it.
    @Test(arguments: ["000", "022", "077"], [false, true]) func aPartFileIsItsOwners(_ umask: String, isOld: Bool)
        async throws
    {
        let length: Int64 = 6 << 20
        let server = try await FaultServer.start(["/data.bin": Resource(length: length, seed: 7, rate: 2 << 20)])
        let place = try TestDirectory()
        #expect(chmod(place.url.path, 0o755) == 0)
        let shell = URL(fileURLWithPath: "/bin/sh")
        let tow = CommandRun.products.appendingPathComponent("tow").path
        let words = ["-c", "umask \(umask); exec \"$0\" \"$@\"", tow, "get", "-x", "1", server.url("/data.bin")]
        let run = try CommandRun(words, directory: place.url, program: shell)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > length / 4 }
        let files = ["data.bin.tow", "data.bin.tow-journal"].map { place.path($0) }
        #expect(try await intrude(on: files) == Array(repeating: EACCES, count: 6))
        run.signal(SIGINT)
        #expect(try await run.finish().status == 130)
        #expect(place.names == ["data.bin.tow", "data.bin.tow-journal"])
        if isOld {
            #expect(chmod(files[0], 0o644) == 0)
        } else {
            #expect(try await intrude(on: files) == Array(repeating: EACCES, count: 6))
        }

        let again = try CommandRun(words, directory: place.url, program: shell)
        await server.log.wait { $0.bodyBytesServed("/data.bin") > length * 5 / 8 }
        #expect(try await intrude(on: [files[0]]) == Array(repeating: EACCES, count: 3))
        let result = try await again.finish()
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["data.bin"])
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path("data.bin"), length: length) == nil)
        await server.stop()
    }

    /// A user without special rights replaces a read-only file of his own. It stays read-only, and has the mark of a
    /// finished file: the next run does not download it again.
    @Test(arguments: [300, 3 << 20] as [Int64]) func aReadOnlyFileIsReplaced(_ length: Int64) async throws {
        let server = try await FaultServer.start(["/data.bin": Resource(length: length, seed: 7)])
        let place = try TestDirectory()
        #expect(FileManager.default.createFile(atPath: place.path("data.bin"), contents: Data([7])))
        for path in [place.url.path, place.path("data.bin")] { #expect(chown(path, 65534, 65534) == 0) }
        #expect(chmod(place.path("data.bin"), 0o444) == 0)
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
        let tow = CommandRun.products.appendingPathComponent("tow").path
        func get(_ more: [String]) async throws -> CommandRun.Result {
            let words = user + [tow, "get", "-d", place.url.path] + more + [server.url("/data.bin")]
            return try await CommandRun(words, program: URL(fileURLWithPath: "/usr/bin/setpriv")).finish()
        }
        #expect(try await get(["--if-exists", "overwrite"]).status == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: place.path("data.bin"))
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o444)
        let asked = server.log.requests("/data.bin").count
        let again = try await get([])
        #expect(again.status == 0 && again.stderr.contains("already downloaded"), "\(again.stderr)")
        #expect(server.log.requests("/data.bin").count == asked)
        await server.stop()
    }
}
