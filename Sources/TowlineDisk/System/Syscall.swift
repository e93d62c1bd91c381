import Glibc

/// The calls of this module to the file system, so that tests can make any of them fail, record them, or end the
/// process at one.
///
/// Each call returns what the kernel returns: a non-negative result, or the negated `errno`. Calls are not retried here
/// (`Descriptor` and `Folder` do that), and do not allocate: `pwrite` runs for all bytes of a download.
package protocol Syscall: AnyObject, Sendable {
    /// Opens or creates a file in a directory with `openat(2)`. Returns a descriptor.
    func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32
    /// Creates a file without a name with `open(2)` (O_TMPFILE). It is deleted if it is closed before it gets a name.
    func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32
    /// Gives a file from `openUnnamed` a name, which must be free, with `linkat(2)`.
    func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32
    /// Closes a descriptor with `close(2)`.
    func close(_ descriptor: Int32) -> Int32
    /// Writes bytes at an offset with `pwrite(2)`. Returns the number of bytes written.
    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int
    /// Moves bytes to a file with `splice(2)` from a pipe that contains `count` bytes. Returns the number of bytes
    /// written.
    func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int
    /// Reads bytes at an offset with `pread(2)`. Returns the number of bytes read, 0 at the end of the file.
    func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int
    /// Writes the next bytes to a pipe or a terminal with `write(2)`. Returns the number of bytes written.
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    /// Waits with `poll(2)` until the descriptor accepts bytes.
    func waitUntilWritable(_ descriptor: Int32) -> Int32
    /// Makes the bytes of a file durable with `fdatasync(2)`, with the metadata needed to read them.
    func fdatasync(_ descriptor: Int32) -> Int32
    /// Makes a file and all its metadata, or the names in a directory, durable with `fsync(2)`.
    func fsync(_ descriptor: Int32) -> Int32
    /// Makes all files of a file system durable with `syncfs(2)`.
    func syncfs(_ descriptor: Int32) -> Int32
    /// Starts to write a file's changed bytes to the disk, with `sync_file_range(2)`. Makes nothing durable and
    /// consumes no error.
    func startWriteback(_ descriptor: Int32) -> Int32
    /// Waits for write-back that has begun, with `sync_file_range(2)`, and reports its errors. Starts none.
    func waitForWriteback(_ descriptor: Int32) -> Int32
    /// Sets the length of a file with `ftruncate(2)`.
    func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32
    /// Reserves disk space for a range of a file with `fallocate(2)`, mode 0.
    func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32
    /// Reads the status of a file with `statx(2)`, without following a link. An empty path means the descriptor.
    func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32
    /// Reads the sizes and the type of the file system that contains an open file, with `fstatfs(2)`.
    func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32
    /// Takes the exclusive lock of a file with `flock(2)`, without waiting.
    func lock(_ descriptor: Int32) -> Int32
    /// Renames a file within a directory with `renameat2(2)`; `keeps` forbids to replace a file (RENAME_NOREPLACE).
    func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32
    /// Gives a file a second name in the same directory with `linkat(2)`.
    func link(_ directory: Int32, _ from: String, _ to: String) -> Int32
    /// Removes a file's name from a directory with `unlinkat(2)`.
    func unlink(_ directory: Int32, _ path: String) -> Int32
    /// Sets an extended attribute of a file with `fsetxattr(2)`.
    func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32
    /// Reads an extended attribute of a file with `fgetxattr(2)`. Returns the length of the value.
    func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int
    /// Finds the next data or hole of a sparse file with `lseek(2)` (SEEK_DATA or SEEK_HOLE). Returns an offset.
    func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64
    /// Sets only the modification time of a file, in seconds since 1970, with `futimens(2)`.
    func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32
    /// Sets the permission bits of a file with `fchmod(2)`.
    func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32
    /// Appends the names in a directory with `readdir(3)`, in no particular order.
    func names(_ directory: Int32, _ names: inout [String]) -> Int32
    /// Syncs every file system of the machine with `sync(2)`, which reports no error.
    func syncAll()
}

extension Syscall {
    /// Syncs every file system with `sync(2)`: the default, which tests replace.
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

    /// The kind of the file, such as regular file or directory.
    package var kind = Kind.other
    /// The identity of the file, which does not depend on its name.
    package var identity = FileIdentity()
    /// The length of the file in bytes.
    package var size: Int64 = 0
    /// The modification time, in seconds since 1970.
    package var modifiedSeconds: Int64 = 0
    /// The nanoseconds of the modification time, in addition to `modifiedSeconds`.
    package var modifiedNanoseconds: UInt32 = 0
    /// The time since 1970 of the last change of the file's metadata or, for a directory, of the names in it. Programs
    /// cannot set it.
    package var changed = Duration.zero
    /// The number of names (hard links) that the file has; 0 after the last one was removed.
    package var links: UInt32 = 0
    /// The user ID of the file's owner.
    package var owner: UInt32 = 0
    /// The permission bits of the file (chmod(2)).
    package var mode: UInt32 = 0
    /// The number of bytes that the file occupies on the disk.
    package var allocated: Int64 = 0

    /// Creates a file status whose numbers are zero, which `Syscall.status` fills.
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
    /// The nanoseconds of the birth time, in addition to `birthSeconds`.
    package var birthNanoseconds: UInt32 = 0

    /// Creates a file identity whose numbers are zero, which `Syscall.status` fills.
    package init() {}

    /// Returns whether two identities have the same inode number and birth time. Ignores device numbers, which may
    /// change after a restart of the machine.
    package func isSameFile(as other: FileIdentity) -> Bool {
        inode == other.inode && birthSeconds == other.birthSeconds && birthNanoseconds == other.birthNanoseconds
    }
}

/// The space of a file system, from `fstatfs(2)`.
package struct FileSystemSpace: Sendable {
    /// The number of bytes available to ordinary users.
    package var available = Int64.max
    /// The size of the whole file system in bytes.
    package var total = Int64.max
    /// The magic number that identifies the type of the file system (`statfs(2)`).
    package var type: Int64 = 0

    /// Creates a value with unlimited sizes (`Int64.max`), which stand for unknown; `Syscall.space` sets them.
    package init() {}
}
