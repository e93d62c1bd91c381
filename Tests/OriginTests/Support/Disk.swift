import Foundation
import Testing

/// A file system in a file, mounted; it can lose its power.
struct Disk {
    /// Whether this process may mount a file.
    static let canMount = geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0

    /// Where it is mounted.
    let mounted: URL
    private let root: URL
    private var image: String { root.path + "/disk" }

    /// Makes a small ext4. It writes nothing by itself for as long as a test takes: what was not synced is lost.
    init(_ root: URL) throws {
        self.root = root
        mounted = root.appendingPathComponent("home")
        try FileManager.default.createDirectory(at: mounted, withIntermediateDirectories: true)
        try Self.run("truncate", "-s", "256M", image)
        try Self.run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        try mount()
    }

    private func mount() throws { try Self.run("mount", "-o", "loop,commit=300,noatime", image, mounted.path) }

    /// Names, lengths and attributes reach the disk, as they do by themselves after some seconds; no file's bytes.
    func syncNamesAlone() throws {
        let descriptor = open(mounted.path, O_RDONLY | O_DIRECTORY)
        defer { close(descriptor) }
        try #require(fsync(descriptor) == 0)
    }

    /// What had not come as far as the disk is gone.
    func losePower() throws {
        try Self.run("cp", "--sparse=always", image, image + ".then")
        // What it still has to write goes to a file that nobody will look at.
        try Self.run("umount", mounted.path)
        try Self.run("mv", image + ".then", image)
        try mount()
    }

    /// Takes it away, whatever is on it.
    func remove() {
        try? Self.run("umount", "-l", mounted.path)
        try? FileManager.default.removeItem(at: root)
    }

    private static func run(_ words: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.environment = ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin"]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(words)")
    }
}
