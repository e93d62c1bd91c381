import Foundation
import Synchronization

/// A disk in memory that is mounted over a directory, and unmounted when the object is released.
final class TestDisk: Sendable {
    /// `true` if this process may mount disks.
    static let canMount = geteuid() == 0

    let path: String
    private let isMounted = Atomic(true)

    /// Creates the directory if it does not exist, and mounts a disk of 64 MB over it.
    init(at url: URL) throws {
        path = url.path
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try Self.run("/usr/bin/mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", path)
    }

    /// Mounts an image with a new ext4 file system over the directory.
    init(image: URL, at url: URL) throws {
        path = url.path
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        if !FileManager.default.fileExists(atPath: image.path) {
            try Self.run("/usr/bin/truncate", "-s", "64M", image.path)
            try Self.run("/usr/sbin/mkfs.ext4", "-q", "-F", image.path)
        }
        try Self.run("/usr/bin/mount", "-o", "loop", image.path, path)
    }

    func set(readOnly: Bool) throws {
        try Self.run("/usr/bin/mount", "-o", readOnly ? "remount,ro" : "remount,rw", path)
    }

    func unmount() throws {
        try Self.run("/usr/bin/umount", path)
        isMounted.store(false, ordering: .relaxed)
    }

    deinit {
        // Another disk may be mounted there now.
        if isMounted.load(ordering: .relaxed) { try? Self.run("/usr/bin/umount", "-l", path) }
    }

    /// Runs a program to its end. Throws if it fails.
    static func run(_ program: String, _ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw POSIXError(.EPERM) }
    }
}
