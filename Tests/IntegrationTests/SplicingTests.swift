import FaultServer
import Foundation
import Testing
import TowlineCore

/// Tests long bodies on a fast connection: the kernel moves them, and every fault of a network, a disk or a process has
/// the same result as if libcurl delivered each byte.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct SplicingTests {
    private static let length: Int64 = 40_000_000
    private static let middle: Int64 = 20_000_000

    // MARK: The network

    static let scenarios: [Scenario] = [
        Scenario(2, .resetAfter(middle), .first(3), .file),
        Scenario(2, .resetAfter(13_000_000), .first(6), .file, connections: 2),
        Scenario(3, .shortBody(after: middle), .first(3), .file, bound: 1.2),
        Scenario(3, .shortBody(after: 13_000_000), .first(6), .file, connections: 2, bound: 1.6),
        Scenario(3, .shortBody(after: middle), .firstOfResume(3), .resumedFile, bound: 1.2),
        Scenario(4, .stall(after: middle), .first(1), .file, bound: 1.3),
        Scenario(4, .stall(after: 13_000_000), .first(2), .file, connections: 2),
        Scenario(5, .surplus(), .always, .file, bound: 1.1),
        Scenario(5, .surplus(100_000), .always, .file, connections: 2, bound: 1.6),
        Scenario(5, .surplus(), .resume, .resumedFile, bound: 1.1),
        Scenario(45, .pause(after: middle, .milliseconds(700)), .always, .file, bound: 1.2),
        Scenario(10, .closeDelimitedWhole, .always, .file, says: .unverified, bound: 1.2),
        Scenario(6, .chunked(), .always, .file, bound: 1.2),
    ]

    @Test(arguments: scenarios) func network(_ scenario: Scenario) async throws {
        try await scenario.play(length: Self.length)
    }

    // MARK: Calls that fail, in the built command

    /// Runs `body` with a server of its own until `body` reports that the kernel moved bytes. The kernel is not asked
    /// to move bytes that arrive too slowly on a busy machine (`SplicePolicy`).
    private func untilSpliced(_ body: (Site) async throws -> Bool) async throws {
        for _ in 0..<30 {
            let isDone = try await Site.with(try await Site(length: Self.length)) { try await body($0) }
            if isDone { return }
        }
        Issue.record("nothing was spliced in thirty downloads")
    }

    /// Returns `DiskFaultTests.strace` with its log in a file, which `calls` reads.
    private static func logged(_ what: String, _ site: Site) -> [String] {
        DiskFaultTests.strace(what).map { $0 == "/dev/null" ? site.scratch.file("calls") : $0 }
    }

    private static func calls(_ site: Site) throws -> [Substring] {
        try String(contentsOfFile: site.scratch.file("calls"), encoding: .utf8).split(separator: "\n")
    }

    /// Returns how often the built command has the kernel move bytes.
    private static func splices(_ site: Site, _ options: [String]) async throws -> Int {
        let strace = ["/usr/bin/strace", "-f", "-qq", "-o", site.scratch.file("calls"), "-e", "trace=splice"]
        try site.law(try await site.tow(options, prefix: strace), status: 0)
        return try calls(site).count
    }

    @Test(.enabled(if: DiskFaultTests.canTrace)) func itIsTheKernelThatMovesThem() async throws {
        try await untilSpliced { site in
            let isMost = try await Self.splices(site, ["-x", "1"]) > 100
            try FileManager.default.removeItem(atPath: site.scratch.file(Site.name))
            #expect(try await Self.splices(site, ["-x", "1", "--limit-rate", "1G"]) == 0)
            return isMost
        }
    }

    static let survivable = [
        // splice(2) fails for the socket or for the file, from the first call on, in the middle, or by an interruption.
        "splice:error=ENOSYS", "splice:error=EPERM", "splice:error=EINVAL:when=2+2",
        "splice:error=EINVAL:when=40+2", "splice:error=EINTR:when=3+2", "splice:error=EINTR:when=4+3",
        // There is no pipe, or only a small one.
        "pipe2:error=EMFILE", "fcntl:error=EPERM",
        // The kernel does not report how many bytes have arrived.
        "ioctl:error=ENOTTY",
    ]

    @Test(.enabled(if: DiskFaultTests.canTrace), arguments: survivable) func callFails(_ what: String) async throws {
        try await untilSpliced { site in
            try site.law(try await site.tow(["-x", "1"], prefix: Self.logged(what, site)), status: 0)
            #expect(site.served < Self.length * 5 / 4)
            return try Self.calls(site).contains { $0.contains("(INJECTED)") }
        }
    }

    /// Fails the writes from the pipe: the file refuses permanently, then works again.
    @Test(.enabled(if: DiskFaultTests.canTrace), arguments: ["ENOSPC", "EIO", "EDQUOT"])
    func theFileRefuses(_ error: String) async throws {
        try await untilSpliced { site in
            let part = site.scratch.path + "/" + Site.name + ".tow"
            let strace = Self.logged("splice:error=\(error):when=20+", site) + ["-P", part]
            let result = try await site.tow(["-x", "1"], prefix: strace)
            guard result.status != 0 else { return false }
            #expect(result.status == 6 && !result.stderr.isEmpty && !site.hasFile, "\(result.stderr)")
            let pieces = try Self.calls(site).compactMap { $0.split(separator: " = ").last.flatMap { Int64($0) } }
            #expect(pieces.count == 19 && pieces.allSatisfy { $0 > 0 })
            let before = site.served
            try site.law(try await site.tow(["-x", "1"]), status: 0)
            // Bytes received before the kernel was first asked to move any, and those it has moved since.
            let written = SplicePolicy.window + pieces.reduce(0, +)
            let seam: Int64 = 16 << 10
            #expect(site.served - before <= Self.length - written + seam, "written bytes count")
            return true
        }
    }

    @Test(.enabled(if: DiskFaultTests.canMount)) func theDiskFillsUp() async throws {
        try await SmallMount.with(megabytes: 48) { mount in
            try await Site.with(try await Site(length: Self.length)) { site in
                let ballast = mount.path + "/ballast"
                try Data(repeating: 1, count: 24 << 20).write(to: URL(fileURLWithPath: ballast))
                let target = ["-x", "1", "-d", mount.path, "--no-preallocate"]
                let result = try await ChildRun.run(site.command(target), directory: mount.path)
                #expect(result.status == 6 && result.stderr.contains("space"), "\(result.stderr)")
                #expect(!FileManager.default.fileExists(atPath: mount.path + "/file.bin"))
                try FileManager.default.removeItem(atPath: ballast)
                let before = site.served
                let again = try await ChildRun.run(site.command(target), directory: mount.path)
                #expect(again.status == 0, "\(again.stderr)")
                let content = Version(length: Self.length).content
                #expect(try content.firstMismatch(inFile: mount.path + "/file.bin", length: Self.length) == nil)
                #expect(site.served - before < Self.length - 8_000_000, "written bytes count")
            }
        }
    }

    // MARK: Kills

    /// Kills the command as it enters the n-th call: into the pipe, or out of it.
    @Test(.enabled(if: DiskFaultTests.canTrace), arguments: [1, 2, 31, 76])
    func killed(_ number: Int) async throws {
        for connections in ["1", "2"] {
            try await untilSpliced { site in
                let kill = DiskFaultTests.strace("splice:signal=KILL:when=\(number)")
                let options = ["-x", connections]
                let result = try await site.tow(options, prefix: kill)
                guard result.status != 0 else { return false }
                #expect(!site.hasFile)
                let before = site.requests.count
                try site.law(try await site.tow(options), status: 0)
                // The sent bytes do not count, because a cut connection loses some of them.
                for request in site.requests.dropFirst(before) {
                    guard case .range(let range) = request.info.range(ofLength: Self.length) else {
                        Issue.record("asks for all")
                        continue
                    }
                    #expect(range.lowerBound > 0, "written bytes count")
                }
                return true
            }
        }
    }
}
