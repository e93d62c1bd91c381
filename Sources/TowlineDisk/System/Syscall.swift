import Glibc

/// The calls of this module to the file system, so that tests can make any of them fail, record them, or end the
/// process at one.
///
/// Each call returns what the kernel returns: a non-negative result, or the negated `errno`. Calls are not retried here
/// (`Descriptor` and `Folder` do that), and do not allocate: `pwrite` runs for all bytes of a download.
package protocol Syscall: AnyObject, Sendable {
    /// `openat(2)`. Returns a descriptor.
    func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32
    /// `open(2)` with O_TMPFILE: creates a file without a name, which is deleted if it is closed before it gets a name.
    func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32
    /// `linkat(2)`: gives a file from `openUnnamed` a name that must be free.
    func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32
    /// `close(2)`.
    func close(_ descriptor: Int32) -> Int32
    /// `pwrite(2)`. Returns the number of bytes written.
    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int
    /// `splice(2)` from a pipe that contains `count` bytes. Returns the number of bytes written.
    func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int
    /// `pread(2)`. Returns the number of bytes read, 0 at the end of the file.
    func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int
    /// `write(2)`, for pipes and terminals.
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    /// `poll(2)`: waits until the descriptor accepts bytes.
    func waitUntilWritable(_ descriptor: Int32) -> Int32
    /// `fdatasync(2)`.
    func fdatasync(_ descriptor: Int32) -> Int32
    /// `fsync(2)`.
    func fsync(_ descriptor: Int32) -> Int32
    /// `syncfs(2)`.
    func syncfs(_ descriptor: Int32) -> Int32
    /// `sync_file_range(2)`, only WRITE: starts to write dirty pages. Makes nothing durable and consumes no error.
    func startWriteback(_ descriptor: Int32) -> Int32
    /// `sync_file_range(2)`, only WAIT_BEFORE: waits for write-back without starting it, and reports its errors.
    func waitForWriteback(_ descriptor: Int32) -> Int32
    /// `ftruncate(2)`.
    func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32
    /// `fallocate(2)`, mode 0.
    func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32
    /// `statx(2)` without following a link. An empty path means the descriptor.
    func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32
    /// `fstatfs(2)`.
    func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32
    /// `flock(2)`: takes an exclusive lock without waiting.
    func lock(_ descriptor: Int32) -> Int32
    /// `renameat2(2)` within a directory; `keeps` sets RENAME_NOREPLACE.
    func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32
    /// `linkat(2)` within a directory.
    func link(_ directory: Int32, _ from: String, _ to: String) -> Int32
    /// `unlinkat(2)` of a file.
    func unlink(_ directory: Int32, _ path: String) -> Int32
    /// `fsetxattr(2)`.
    func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32
    /// `fgetxattr(2)`. Returns the length of the value.
    func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int
    /// `lseek(2)` with SEEK_DATA or SEEK_HOLE. Returns an offset.
    func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64
    /// `futimens(2)`: sets only the modification time, in seconds since 1970.
    func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32
    /// `fchmod(2)`: sets the permission bits.
    func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32
    /// `readdir(3)`: appends the names in a directory, in no particular order.
    func names(_ directory: Int32, _ names: inout [String]) -> Int32
    /// `sync(2)`: syncs every file system and reports no error.
    func syncAll()
}

extension Syscall {
    /// Calls `sync(2)`.
    package func syncAll() { Glibc.sync() }
}

/// The status of a file, from `statx(2)`.
package struct FileStatus: Sendable {
    /// The kinds of file that Towline distinguishes.
    package enum Kind: Sendable {
        /// A regular file.
        case regular
        /// A directory.
        case directory
        /// A symbolic link.
        case link
        /// A FIFO, a socket or a device.
        case other
    }

    /// The kind of file.
    package var kind = Kind.other
    /// The identity of the file, which does not depend on its name.
    package var identity = FileIdentity()
    /// The length in bytes.
    package var size: Int64 = 0
    /// The modification time, in seconds since 1970.
    package var modifiedSeconds: Int64 = 0
    /// The nanoseconds of the modification time.
    package var modifiedNanoseconds: UInt32 = 0
    /// The time since 1970 of the last change of the file's metadata or, for a directory, of the names in it. Programs
    /// cannot set it.
    package var changed = Duration.zero
    /// The number of names (hard links) that the file has; 0 after the last one was removed.
    package var links: UInt32 = 0
    /// The user ID of the owner.
    package var owner: UInt32 = 0
    /// The permission bits.
    package var mode: UInt32 = 0
    /// The number of bytes allocated on the disk.
    package var allocated: Int64 = 0

    /// Creates a status of zeros, which `Syscall.status` fills.
    package init() {}

    /// Returns whether the file is unchanged since `earlier`, according to its length and modification time.
    func isUnchanged(since earlier: FileStatus) -> Bool {
        size == earlier.size && modifiedSeconds == earlier.modifiedSeconds
            && modifiedNanoseconds == earlier.modifiedNanoseconds
    }
}

/// The identity of a file, independent of its name. A copied or restored file has another identity.
package struct FileIdentity: Hashable, Sendable {
    /// The device number, which may change after a restart of the machine.
    package var device: UInt64 = 0
    /// The inode number, which file systems reuse.
    package var inode: UInt64 = 0
    /// The time when the inode was created, in seconds since 1970; 0 if the file system does not store it.
    package var birthSeconds: Int64 = 0
    /// The nanoseconds of the birth time.
    package var birthNanoseconds: UInt32 = 0

    /// Creates an identity of zeros, which `Syscall.status` fills.
    package init() {}

    /// Returns whether both have the same inode number and birth time. Ignores device numbers, which may change after a
    /// restart of the machine.
    package func isSameFile(as other: FileIdentity) -> Bool {
        inode == other.inode && birthSeconds == other.birthSeconds && birthNanoseconds == other.birthNanoseconds
    }
}

/// The space of a file system, from `fstatfs(2)`.
package struct FileSystemSpace: Sendable {
    /// The number of bytes available to ordinary users.
    package var available = Int64.max
    /// The size of the file system in bytes.
    package var total = Int64.max
    /// The file system's magic number (`statfs(2)`).
    package var type: Int64 = 0

    /// Creates a value with unlimited sizes (`Int64.max`), which stand for unknown; `Syscall.space` sets them.
    package init() {}
}
