import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

/// Catalogue D: the disk refuses, lies or fills up, and other programs change the directory (rows 85–102).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct DiskFaultTests {
    static let canMount = Thoroughness.isRequired || geteuid() == 0
    static let canTrace = Thoroughness.areThere("/usr/bin/strace")

    // MARK: Full disks

    /// Row 85: the disk fills up midway; after some space is freed, the same command resumes.
    @Test(.enabled(if: canMount)) func row85DiskFillsUp() async throws {
        try await SmallMount.with(megabytes: 8) { mount in
            try await Site.with(try await Site(Resource(length: 6_000_000, rate: 4_000_000))) { site in
                let target = ["-d", mount.path, "--no-preallocate"]
                let run = try ChildRun(site.command(target), directory: mount.path)
                await site.server.log.wait { $0.bodyBytesServed(Site.path) > 2_000_000 }
                try Data(repeating: 1, count: 4 << 20).write(to: URL(fileURLWithPath: mount.path + "/ballast"))
                let result = try await run.finish()
                #expect(result.status == 6, "\(result.stderr)")
                #expect(result.stderr.contains("space"), "\(result.stderr)")
                #expect(!FileManager.default.fileExists(atPath: mount.path + "/file.bin"))
                try FileManager.default.removeItem(atPath: mount.path + "/ballast")
                let before = site.served
                let again = try await ChildRun.run(site.command(target), directory: mount.path)
                #expect(again.status == 0, "\(again.stderr)")
                #expect(try mismatch(mount.path + "/file.bin", 6_000_000) == nil)
                #expect(site.served - before < 6_000_000 - 1_000_000, "written bytes count")
            }
        }
    }

    /// Row 86: a file that cannot fit is refused before its first byte.
    @Test(.enabled(if: canMount)) func row86TooLargeFromTheStart() async throws {
        try await SmallMount.with(megabytes: 4) { mount in
            try await Site.with(try await Site(length: 400_000_000)) { site in
                let result = try await ChildRun.run(site.command(["-d", mount.path]), directory: mount.path)
                #expect(result.status == 6, "\(result.stderr)")
                #expect(mount.names.isEmpty, "\(mount.names)")
            }
        }
    }

    /// Row 86: of a list, the files that fit are downloaded. The others are refused before their first byte, in this
    /// run and in the next one.
    @Test(.enabled(if: canMount)) func row86AListOnASmallDisk() async throws {
        try await SmallMount.with(megabytes: 9) { mount in
            let more = Dictionary(
                uniqueKeysWithValues: (0..<4).map { ("/f\($0)", Resource(length: 3_000_000, rate: 4_000_000)) })
            try await Site.with(try await Site(more: more)) { site in
                let list = site.scratch.file("list")
                let urls = more.keys.sorted().map { site.server.url($0) + "\n" }
                try Data(urls.joined().utf8).write(to: URL(fileURLWithPath: list))
                for _ in 0..<2 {
                    let result = try await ChildRun.run(
                        [ChildRun.tow, "get", "-d", mount.path, "-i", list], directory: mount.path)
                    #expect(result.status == 6 && result.stderr.contains("not enough free disk space"))
                    #expect(mount.names.count >= 2 && !mount.names.contains { $0.contains(".tow") }, "\(mount.names)")
                }
            }
        }
    }

    // MARK: Calls that fail, in the built command

    struct Injection: Sendable, CustomTestStringConvertible {
        let row: Int
        let what: String
        let status: Int32
        /// `true` if all received bytes may have to be fetched again.
        var losesAll = false
        var testDescription: String { "\(row) \(what)" }
    }

    static let injections = [
        Injection(row: 85, what: "pwrite64:error=ENOSPC:when=30+", status: 6),
        Injection(row: 86, what: "fallocate:error=ENOSPC", status: 6),
        Injection(row: 88, what: "pwrite64:error=EIO:when=30+", status: 6),
        Injection(row: 89, what: "fdatasync:error=EIO", status: 6, losesAll: true),
        Injection(row: 91, what: "renameat2:error=EROFS", status: 6),
        Injection(row: 93, what: "pwrite64:error=EDQUOT:when=30+", status: 6),
    ]

    /// Rows 85–93: a system call fails permanently; then the disk works again and the same command succeeds.
    @Test(.enabled(if: canTrace), arguments: injections) func callFailsForGood(_ injection: Injection) async throws {
        try await Site.with(try await Site(length: 4_000_000)) { site in
            let result = try await site.tow(prefix: Self.strace(injection.what))
            #expect(result.status == injection.status, "\(result.stderr)")
            // A sync that fails after the rename is an error too; the file under the name is complete by then.
            let isWhole = try site.published([Version(length: 4_000_000)]) != nil
            #expect(!site.hasFile || injection.row == 89 && isWhole)
            #expect(!result.stderr.isEmpty)
            // The server may still be sending to the failed command.
            let earlier = site.requests.count
            // The run uses one connection: if a slow reader's answer is cut for others, the server has sent more than
            // was read.
            try site.law(try await site.tow(["-x", "1"]), status: 0)
            let served = site.requests[earlier...].reduce(0) { $0 + $1.bodyBytes }
            if !injection.losesAll { #expect(served <= 4_000_000 + 300_000) }
        }
    }

    /// Row 89: the last sync fails, which is the one of the directory after the rename. The file is complete and
    /// durable, but its name may not be: the name stays, the exit status is 6 and the message names the file. No byte
    /// is fetched again, and no run reports success before the directory is synced.
    @Test(.enabled(if: canTrace), arguments: [4_000_000, 100_000]) func row89DirectorySync(_ length: Int64) async throws
    {
        try await Site.with(try await Site(length: length)) { site in
            let failing = [
                "/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-P", site.scratch.path, "-e", "trace=fsync", "-e",
                "inject=fsync:error=EIO",
            ]
            for _ in 0..<2 {
                let result = try await site.tow(["-x", "1"], prefix: failing)
                #expect(result.status == 6, "\(result.stderr)")
                #expect(result.stderr.contains("is complete, but its directory entry"), "\(result.stderr)")
                #expect(try site.published([Version(length: length)]) != nil)
                #expect(!site.hasPart)
            }
            let requests = site.requests.count
            try site.law(try await site.tow(), status: 0)
            #expect(site.requests.count == requests && site.served == length)
        }
    }

    /// A download that waits for a slow disk has given its slot to the next, so that many share a sync. Two at a time
    /// would need three syncs for each two: two for the files and one for their directory.
    @Test(.enabled(if: canTrace)) func whoWaitsForTheDiskMakesRoom() async throws {
        let names = (0..<60).map { "/small\($0)" }
        let files = Dictionary(uniqueKeysWithValues: names.map { ($0, Resource(length: 5000)) })
        try await Site.with(try await Site(Resource(length: 1), more: files)) { site in
            let syncs = "fsync,fdatasync,syncfs"
            let log = site.scratch.file("calls")
            let strace = [
                "/usr/bin/strace", "-f", "-qq", "-o", log, "-e", "trace=" + syncs, "-e",
                "inject=\(syncs):delay_enter=200000",
            ]
            let result = try await ChildRun.run(
                strace + [ChildRun.tow, "get", "-q", "-j", "2"] + names.map(site.server.url),
                directory: site.scratch.path)
            #expect(result.status == 0, "\(result.stderr)")
            let calls = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
            #expect(calls.count { !$0.contains(" resumed>") } < 45, "\(calls)")
            #expect(site.scratch.names.count == 61)
        }
    }

    static let survivable = [
        Injection(row: 89, what: "fdatasync:error=EIO:when=1", status: 0),
        Injection(row: 90, what: "pwrite64:error=EINTR:when=10..40+7", status: 0),
        Injection(row: 99, what: "renameat2:error=EINVAL:when=1", status: 0),
        Injection(row: 101, what: "fallocate:error=EOPNOTSUPP", status: 0),
        Injection(row: 102, what: "fdatasync:delay_enter=200000", status: 0),
    ]

    /// Rows 89, 90, 99, 101, 102: failures that a download must survive without help.
    @Test(.enabled(if: canTrace), arguments: survivable) func callFailsNowAndThen(_ injection: Injection) async throws {
        try await Site.with(try await Site(Resource(length: 6_000_000, rate: 3_000_000))) { site in
            let result = try await site.tow(prefix: Self.strace(injection.what))
            if injection.row == 99 || injection.row == 89 {
                if result.status != 0 { try site.law(try await site.tow(), status: 0) }
                #expect(try site.published([Version(length: 6_000_000)]) != nil)
            } else {
                try site.law(result, status: 0)
            }
        }
    }

    static func strace(_ what: String) -> [String] {
        let call = what.prefix { $0 != ":" }
        return ["/usr/bin/strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(what)"]
    }

    // MARK: Permissions and limits

    /// Row 91: a directory without write permission.
    @Test(.enabled(if: canMount && Thoroughness.areThere("/usr/bin/setpriv"))) func row91DirectoryReadOnlyForUser()
        async throws
    {
        try await Site.with(try await Site()) { site in
            let folder = site.scratch.file("locked")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            chmod(folder, 0o555)
            chmod(site.scratch.path, 0o755)
            // The build may be readable only by its owner, so the command is copied to a place where any user may run
            // it.
            let copy = site.scratch.file("tow-copy")
            try FileManager.default.copyItem(atPath: ChildRun.tow, toPath: copy)
            chmod(copy, 0o755)
            let user = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            var command = site.command(["-d", folder], prefix: user)
            command = command.map { $0 == ChildRun.tow ? copy : $0 }
            let result = try await ChildRun.run(command, directory: "/")
            #expect(result.status == 6, "\(result.stderr)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    @Test(.enabled(if: canMount)) func row91ReadOnlyFileSystem() async throws {
        try await SmallMount.with(megabytes: 4) { mount in
            try await ChildRun.tool("/usr/bin/mount", "-o", "remount,ro", mount.path)
            try await Site.with(try await Site()) { site in
                let result = try await ChildRun.run(site.command(["-d", mount.path]), directory: "/")
                #expect(result.status == 6, "\(result.stderr)")
                #expect(result.stderr.contains("read-only"), "\(result.stderr)")
            }
        }
    }

    /// Row 92: `ulimit -f`; its signal must not end the process without a message.
    @Test func row92FileSizeLimit() async throws {
        try await Site.with(try await Site(length: 8_000_000)) { site in
            let limited = ["/bin/bash", "-c", "ulimit -f 3000; exec \"$@\"", "bash"]
            let result = try await site.tow(prefix: limited)
            try site.law(result, status: 6)
            #expect(result.stderr.contains("ulimit") || result.stderr.contains("larger"), "\(result.stderr)")
            try site.law(try await site.tow(), status: 0)
        }
    }

    // MARK: Changes of the part file between two runs

    /// Row 94: the part file was deleted: the download starts over.
    @Test func row94PartDeleted() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            try FileManager.default.removeItem(atPath: site.scratch.file("file.bin.tow"))
            try site.expectFile(try await site.download())
        }
    }

    /// Row 94: the part file is shorter: only the missing bytes are fetched again.
    @Test func row94PartTruncated() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            #expect(truncate(site.scratch.file("file.bin.tow"), 700_000) == 0)
            let before = site.served
            try site.expectFile(try await site.download())
            #expect(site.served - before < 2_400_000)
        }
    }

    /// Row 94: the part file is longer: its tail is cut off.
    @Test func row94PartExtended() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            let file = try #require(FileHandle(forUpdatingAtPath: site.scratch.file("file.bin.tow")))
            try file.seekToEnd()
            try file.write(contentsOf: Data(repeating: 0x55, count: 5_000_000))
            try file.close()
            try site.expectFile(try await site.download())
        }
    }

    /// Row 94: a bit flips just before the seam: the overlap detects it.
    @Test func row94BitFlippedAtTheSeam() async throws {
        try await Site.with(try await Site()) { site in
            try await site.interrupt(after: Scenario.held)
            try site.flip(at: Scenario.held - 5000)
            try site.expectFile(try await site.download())
        }
    }

    /// Row 94: a bit flips elsewhere: a digest detects it, and wrong bytes are not published.
    @Test func row94BitFlippedElsewhere() async throws {
        try await Site.with(try await Site()) { site in
            let right = CRC32C.bigEndian(FaultContent(seed: 1).bytes(in: 0..<3_000_000))
            let checksum = try #require(Checksum(algorithm: .crc32c, value: right))
            try await site.interrupt(after: Scenario.held)
            try site.flip(at: 200_000)
            try site.expectFailure(try await site.download { $0.checksum = checksum }, .checksumMismatch)
            #expect(site.scratch.isThere("file.bin.tow-bad"))
            try await site.expectRecovery { $0.checksum = checksum }
        }
    }

    /// Row 95: the part file is deleted while bytes are written to it.
    @Test func row95PartDeletedWhileRunning() async throws {
        try await Site.with(try await Site(Resource(length: 6_000_000, rate: 1_500_000))) { site in
            let download = Download(try site.options())
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes > 800_000 }
            try FileManager.default.removeItem(atPath: site.scratch.file("file.bin.tow"))
            let end = await outcome
            try site.expectFile(end)
            #expect(end.says(.restarted))
        }
    }

    /// Row 96: another kind of file has the part file's name: it is not followed, opened or removed.
    @Test(arguments: ["link", "fifo", "directory"]) func row96PartIsSomethingElse(_ kind: String) async throws {
        try await Site.with(try await Site()) { site in
            let part = site.scratch.file("file.bin.tow")
            let precious = try site.scratch.write("precious", "do not touch")
            switch kind {
            case "link": #expect(symlink(precious, part) == 0)
            case "fifo": #expect(mkfifo(part, 0o600) == 0)
            default: try FileManager.default.createDirectory(atPath: part, withIntermediateDirectories: false)
            }
            let outcome = try await site.download()
            #expect(outcome.code == .unusableDestination, "\(outcome.result)")
            #expect(site.scratch.read("precious") == "do not touch")
            #expect(!site.hasFile && site.scratch.isThere("file.bin.tow"))
        }
    }

    /// Row 97: a file appears under the name in the meantime: it is kept under every policy except `overwrite` and
    /// `update`.
    @Test(arguments: ExistingPolicy.allCases) func row97TargetAppears(_ policy: ExistingPolicy) async throws {
        try await Site.with(try await Site(Resource(length: 3_000_000, rate: 3_000_000))) { site in
            let download = Download(try site.options { $0.existing = policy })
            async let running = download.run()
            await download.observer.wait { $0.heldBytes > 500_000 }
            try site.scratch.write(Site.name, "mine")
            let outcome = await running
            let version = Version(length: 3_000_000)
            switch policy {
            case .fail:
                #expect(outcome.code == .destinationExists, "\(outcome.result)")
                #expect(site.hasPart, "the bytes are kept")
                #expect(site.scratch.read(Site.name) == "mine")
            case .skip: #expect(site.scratch.read(Site.name) == "mine")
            case .overwrite, .update: #expect(try site.published([version]) != nil)
            case .rename:
                #expect(site.scratch.read(Site.name) == "mine")
                let others = site.scratch.names.filter { $0 != Site.name }
                #expect(others.count == 1, "\(others)")
                #expect(try site.published([version], name: others.first ?? "") != nil)
            }
        }
    }

    /// Row 97: the file, or another download's part file, appears between the survey and the first answer.
    @Test(arguments: ["file.bin", "file.bin.tow"]) func row97AppearsBeforeTheFirstAnswer(_ name: String) async throws {
        let gate = Gate()
        let late = Fault("late") { Reply([.wait(gate)] + $0.correct.steps) }
        try await Site.with(try await Site(.always(late))) { site in
            let download = Download(try site.options { $0.existing = .fail })
            async let running = download.run()
            await site.server.log.wait { $0.requests(Site.path).count == 1 }
            try site.scratch.write(name, "mine")
            gate.open()
            let outcome = await running
            if name == Site.name {
                #expect(outcome.code == .destinationExists, "\(outcome.result)")
                #expect(site.scratch.read(Site.name) == "mine")
            } else {
                // The part file has too few bytes to keep, and no process has locked it.
                try site.expectFile(outcome)
            }
        }
    }

    /// Row 98: the directory is removed while the download runs.
    @Test func row98DirectoryRemoved() async throws {
        try await Site.with(try await Site(Resource(length: 3_000_000, rate: 1_500_000))) { site in
            let folder = site.scratch.file("folder")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let download = Download(try site.options { $0.target = .file(directory: folder, name: Site.name) })
            async let running = download.run()
            await download.observer.wait { $0.heldBytes > 500_000 }
            try FileManager.default.removeItem(atPath: folder)
            let outcome = await running
            #expect(!outcome.succeeded)
            #expect([.disk, .failed].contains(outcome.status), "\(outcome.result)")
        }
    }

    /// Row 98: the directory is moved while the download runs: the file is in the moved directory, or an error reports
    /// it.
    @Test func row98DirectoryMoved() async throws {
        try await Site.with(try await Site(Resource(length: 3_000_000, rate: 3_000_000))) { site in
            let folder = site.scratch.file("folder")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let download = Download(try site.options { $0.target = .file(directory: folder, name: Site.name) })
            async let running = download.run()
            await download.observer.wait { $0.heldBytes > 500_000 }
            try FileManager.default.moveItem(atPath: folder, toPath: site.scratch.file("elsewhere"))
            let outcome = await running
            if outcome.succeeded {
                #expect(try site.published([Version(length: 3_000_000)], name: "elsewhere/file.bin") != nil)
            } else {
                #expect(!site.scratch.isThere("elsewhere/file.bin"))
            }
        }
    }

    /// Row 99: the part file is beside the target, whatever `TMPDIR` says: no rename across file systems.
    @Test func rows99And127PartLiesBesideTheTarget() async throws {
        try await Site.with(try await Site(length: 3_000_000, .always(.stall(after: 2_000_000)))) { site in
            let elsewhere = try Scratch()
            let run = try ChildRun(
                site.command(), directory: site.scratch.path, environment: ["TMPDIR": elsewhere.path])
            await site.server.log.wait { $0.bodyBytesServed(Site.path) >= 2_000_000 }
            // Bytes in the server's kernel buffers are still on their way to the program.
            for _ in 0..<500 where !site.hasPart { try await Task.sleep(for: .milliseconds(10)) }
            #expect(site.hasPart)
            run.signal(SIGTERM)
            _ = try await run.finish()
            #expect(elsewhere.names.isEmpty)
        }
    }

    /// Row 100: names that are too long, are not UTF-8, or differ only in case.
    @Test(arguments: [
        String(repeating: "n", count: 300) + ".bin", "caf%C3%A9.bin", "cafe%CC%81.bin", "bad%FF%FEutf8.bin", "%2E%2E",
        "a%2Fb%2Fc", "%00nul", "CON", "-rf", ".bashrc",
    ])
    func row100Names(_ name: String) async throws {
        let target = "/dir/" + name
        try await Site.with(try await Site(more: ["/dir/*": Resource(length: 100_000)])) { site in
            let result = try await site.tow(target: target, named: false)
            #expect(result.status == 0 || result.status == 2, "\(result.stderr)")
            guard result.status == 0 else { return }
            #expect(site.scratch.names.count == 1, "\(site.scratch.names)")
            let made = site.scratch.names.first ?? ""
            #expect(made.utf8.count <= 255 && !made.hasPrefix(".") && !made.hasPrefix("-") && !made.isEmpty)
            #expect(try site.published([Version(length: 100_000)], name: made) != nil)
        }
    }

    private func mismatch(_ path: String, _ length: Int64) throws -> Int64? {
        try FaultContent(seed: 1).firstMismatch(inFile: path, length: length)
    }
}

extension Site {
    /// Flips a bit of the part file.
    func flip(at offset: Int64) throws {
        let file = try #require(FileHandle(forUpdatingAtPath: scratch.file("file.bin.tow")))
        try file.seek(toOffset: UInt64(offset))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data([byte ^ 4]))
        try file.close()
    }
}

/// A small file system in memory, mounted for one test.
final class SmallMount: Sendable {
    let path: String
    private let scratch: Scratch

    private init() throws {
        scratch = try Scratch()
        path = scratch.path
    }

    static func with(megabytes: Int, _ body: (SmallMount) async throws -> Void) async throws {
        let mount = try SmallMount()
        try await ChildRun.tool("/usr/bin/mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", mount.path)
        do {
            try await body(mount)
        } catch {
            try await ChildRun.tool("/usr/bin/umount", "-l", mount.path)
            throw error
        }
        try await ChildRun.tool("/usr/bin/umount", "-l", mount.path)
    }

    var names: [String] { scratch.names }
}
