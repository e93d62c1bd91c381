import FaultServer
import Foundation
import Testing

/// File systems that change inode numbers: the same command resumes after a mount, with the built `tow`.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct RenumberedDiskTests {
    static let canMount = Thoroughness.isRequired || geteuid() == 0
    /// Kernels of some virtual machines have no FAT.
    static let canMountFAT =
        canMount && Thoroughness.areThere("/usr/sbin/mkfs.vfat")
        && (try? String(contentsOfFile: "/proc/filesystems", encoding: .utf8))?.contains("vfat") == true
    static let canMountPools =
        canMount && Thoroughness.areThere("/usr/bin/mergerfs") && FileManager.default.fileExists(atPath: "/dev/fuse")

    private static let length: Int64 = 12_000_000

    /// Interrupts a download into a directory when a third of the file has arrived.
    private func interrupt(_ site: Site, _ directory: String) async throws {
        let run = try ChildRun(site.command(["-x", "2", "-d", directory]), directory: site.scratch.path)
        await site.server.log.wait { $0.bodyBytesServed(Site.path) > Self.length / 3 }
        run.signal(SIGINT)
        #expect(try await run.finish().status == 130)
    }

    /// Runs the same command again, and expects that the held bytes are used.
    private func resume(_ site: Site, _ directory: String) async throws {
        let before = site.served
        let result = try await ChildRun.run(
            site.command(["-x", "2", "-d", directory]), directory: site.scratch.path)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try FaultContent(seed: 1).firstMismatch(inFile: directory + "/file.bin", length: Self.length) == nil)
        // The samples are 1 MiB. The server sends some bytes beyond what the first run took.
        #expect(site.served - before < Self.length - Self.length / 3 + 2_500_000, "\(result.stderr)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["file.bin"])
    }

    private func site() async throws -> Site {
        try await Site(Resource(length: Self.length, rate: 4_000_000))
    }

    /// Changes the first MiB of the part file, which contains samples, and expects that the download restarts.
    private func restart(_ site: Site, _ directory: String) async throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory + "/file.bin.tow"))
        try file.write(contentsOf: Data(repeating: 0x78, count: 1 << 20))
        try file.close()
        let result = try await ChildRun.run(site.command(["-d", directory]), directory: site.scratch.path)
        #expect(result.status == 0 && result.stderr.contains("restarting"), "\(result.stderr)")
        #expect(try FaultContent(seed: 1).firstMismatch(inFile: directory + "/file.bin", length: Self.length) == nil)
    }

    @Test("FAT, which has no extended attributes", .enabled(if: canMountFAT), arguments: [false, true])
    func fat(_ isChanged: Bool) async throws {
        let disk = try Scratch()
        let (image, folder) = (disk.file("image"), disk.file("disk"))
        try await ChildRun.tool("/usr/bin/truncate", "-s", "64M", image)
        try await ChildRun.tool("/usr/sbin/mkfs.vfat", image)
        try await ChildRun.tool("/usr/bin/mkdir", folder)
        try await Site.with(try await site()) { site in
            let mount = ["/usr/bin/mount", "-o", "loop", image, folder]
            try await Mounted.with(folder, mount) { try await interrupt(site, folder) }
            try await Mounted.with(folder, mount) {
                // FAT numbers files in the order of their first use.
                try await ChildRun.tool("/usr/bin/stat", folder + "/file.bin.tow-journal")
                try await isChanged ? restart(site, folder) : resume(site, folder)
            }
        }
    }

    @Test(
        "a pool of disks, with and without extended attributes", .enabled(if: canMountPools),
        arguments: ["passthrough", "nosys"], [false, true])
    func pool(_ attributes: String, _ isChanged: Bool) async throws {
        let disk = try Scratch()
        let pool = disk.file("pool")
        for name in ["a", "b", "pool"] { try await ChildRun.tool("/usr/bin/mkdir", disk.file(name)) }
        // mergerfs stays in the background and would keep the descriptors of this process open; Python closes them.
        let call = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], stdout=-3, stderr=-3))"
        let mount = [
            "/usr/bin/env", "python3", "-c", call, "/usr/bin/mergerfs", "-o",
            "xattr=\(attributes),category.create=mfs,minfreespace=1M", disk.file("a") + ":" + disk.file("b"), pool,
        ]
        try await Site.with(try await site()) { site in
            try await Mounted.with(pool, mount) { try await interrupt(site, pool) }
            try await Mounted.with(pool, mount) {
                // mergerfs numbers files in the order of their first use.
                try await ChildRun.tool("/usr/bin/stat", pool + "/file.bin.tow-journal")
                try await isChanged ? restart(site, pool) : resume(site, pool)
            }
        }
    }

    @Test("a copy with its attributes, and one without", arguments: ["--preserve=all", "--preserve=mode"])
    func copies(_ preserving: String) async throws {
        try await Site.with(try await site()) { site in
            let folder = site.scratch.file("folder")
            try await ChildRun.tool("/usr/bin/mkdir", folder)
            try await interrupt(site, folder)
            try await ChildRun.tool("/usr/bin/cp", preserving, folder + "/file.bin.tow", folder + "/copy")
            try await ChildRun.tool("/usr/bin/mv", folder + "/copy", folder + "/file.bin.tow")
            if preserving == "--preserve=all" { return try await resume(site, folder) }
            let result = try await ChildRun.run(site.command(["-d", folder]), directory: site.scratch.path)
            #expect(result.status == 0 && result.stderr.contains("copied or replaced"), "\(result.stderr)")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            #expect(names == ["file.bin", "file.bin.tow-aside"])
        }
    }
}

/// A file system that is mounted for some steps of a test.
private enum Mounted {
    static func with(_ path: String, _ mount: [String], _ body: () async throws -> Void) async throws {
        let result = try await ChildRun.run(mount)
        try #require(result.status == 0, "\(mount): \(result.stderr)")
        do {
            try await body()
        } catch {
            try await ChildRun.tool("/usr/bin/umount", path)
            throw error
        }
        try await ChildRun.tool("/usr/bin/umount", path)
    }
}
