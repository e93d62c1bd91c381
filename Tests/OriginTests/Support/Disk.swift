import Foundation
import Testing

/// A mounted file system in an image file, which can simulate a power failure.
struct Disk {
    /// `true` if this process may mount an image file.
    static let canMount = geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0

    /// The mount point.
    let mounted: URL
    private let root: URL
    private var image: String { root.path + "/disk" }

    /// Creates a small ext4, which does not write automatically during a test, so that data without a sync is lost.
    init(_ root: URL) throws {
        self.root = root
        mounted = root.appendingPathComponent("home")
        try FileManager.default.createDirectory(at: mounted, withIntermediateDirectories: true)
        try Self.run("truncate", "-s", "256M", image)
        try Self.run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        try mount()
    }

    private func mount() throws { try Self.run("mount", "-o", "loop,commit=300,noatime", image, mounted.path) }

    /// Writes names, lengths and attributes to the disk, but not the bytes of files. A real file system writes this
    /// metadata automatically after some seconds.
    func syncNamesAlone() throws {
        let descriptor = open(mounted.path, O_RDONLY | O_DIRECTORY)
        defer { close(descriptor) }
        try #require(fsync(descriptor) == 0)
    }

    /// Simulates a power failure: data that is not on the disk is lost.
    func losePower() throws {
        try Self.run("cp", "--sparse=always", image, image + ".then")
        // The unmount writes the remaining data to the old image, which is then replaced by the copy.
        try Self.run("umount", mounted.path)
        try Self.run("mv", image + ".then", image)
        try mount()
    }

    /// Unmounts and deletes the disk with its contents.
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
