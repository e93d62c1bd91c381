import Glibc

/// Every call that this module makes to the file system, so that tests can make any of them fail, record them, or
/// end the process at one.
///
/// Calls answer as the kernel does: a result that is not negative, or the negated `errno`. Nothing is retried here
/// (`Descriptor` and `Folder` do that), and no call allocates: `pwrite` is on the way of every byte.
package protocol Syscall: AnyObject, Sendable {
    /// `openat(2)`; a descriptor.
    func openat(_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) -> Int32
    /// `open(2)` with O_TMPFILE: a file without a name, which is gone when it is closed before it gets one.
    func openUnnamed(_ directory: Int32, _ mode: UInt32) -> Int32
    /// `linkat(2)`: gives a file from `openUnnamed` a name that must be free.
    func name(_ descriptor: Int32, _ directory: Int32, _ name: String) -> Int32
    /// `close(2)`.
    func close(_ descriptor: Int32) -> Int32
    /// `pwrite(2)`; the number of bytes taken.
    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int
    /// `splice(2)` from a pipe that holds so many; the number of bytes taken.
    func splice(_ descriptor: Int32, _ pipe: Int32, _ count: Int, _ offset: Int64) -> Int
    /// `pread(2)`; the number of bytes read, 0 at the end.
    func pread(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int
    /// `write(2)`, for pipes and terminals.
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int
    /// `poll(2)` until the descriptor takes bytes.
    func waitUntilWritable(_ descriptor: Int32) -> Int32
    /// `fdatasync(2)`.
    func fdatasync(_ descriptor: Int32) -> Int32
    /// `fsync(2)`.
    func fsync(_ descriptor: Int32) -> Int32
    /// `syncfs(2)`.
    func syncfs(_ descriptor: Int32) -> Int32
    /// `sync_file_range(2)`, WRITE alone: begins to write what is dirty, makes nothing durable, takes no error away.
    func startWriteback(_ descriptor: Int32) -> Int32
    /// `sync_file_range(2)`, WAIT_BEFORE alone: writes nothing, reports the file's write-back errors.
    func waitForWriteback(_ descriptor: Int32) -> Int32
    /// `ftruncate(2)`.
    func ftruncate(_ descriptor: Int32, _ length: Int64) -> Int32
    /// `fallocate(2)`, mode 0.
    func fallocate(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> Int32
    /// `statx(2)` without following a link; an empty path asks for the descriptor itself.
    func status(_ directory: Int32, _ path: String, _ status: inout FileStatus) -> Int32
    /// `fstatfs(2)`.
    func space(_ descriptor: Int32, _ space: inout FileSystemSpace) -> Int32
    /// `flock(2)`, exclusive, without waiting.
    func lock(_ descriptor: Int32) -> Int32
    /// `renameat2(2)` within a directory; `keeps`: RENAME_NOREPLACE.
    func rename(_ directory: Int32, _ from: String, _ to: String, keeps: Bool) -> Int32
    /// `linkat(2)` within a directory.
    func link(_ directory: Int32, _ from: String, _ to: String) -> Int32
    /// `unlinkat(2)` of a file.
    func unlink(_ directory: Int32, _ path: String) -> Int32
    /// `fsetxattr(2)`.
    func setAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeRawBufferPointer) -> Int32
    /// `fgetxattr(2)`; the value's length.
    func getAttribute(_ descriptor: Int32, _ name: String, _ value: UnsafeMutableRawBufferPointer) -> Int
    /// `lseek(2)` with SEEK_DATA or SEEK_HOLE; an offset.
    func seek(_ descriptor: Int32, _ offset: Int64, toHole: Bool) -> Int64
    /// `futimens(2)`: sets the modification time alone, seconds since 1970.
    func setModified(_ descriptor: Int32, _ seconds: Int64) -> Int32
    /// `fchmod(2)`: sets the permission bits.
    func setMode(_ descriptor: Int32, _ mode: UInt32) -> Int32
    /// `readdir(3)`: the names in a directory, in no order.
    func names(_ directory: Int32, _ names: inout [String]) -> Int32
    /// `sync(2)`: syncs every file system and reports no error.
    func syncAll()
}

extension Syscall {
    /// The system's own.
    package func syncAll() { Glibc.sync() }
}

/// What `statx(2)` tells of a file.
package struct FileStatus: Sendable {
    /// The kinds of file that matter here.
    package enum Kind: Sendable {
        /// A regular file.
        case regular
        /// A directory.
        case directory
        /// A symbolic link.
        case link
        /// A FIFO, a socket, a device.
        case other
    }

    /// The kind of file.
    package var kind = Kind.other
    /// Which file it is.
    package var identity = FileIdentity()
    /// Length in bytes.
    package var size: Int64 = 0
    /// Modification time, seconds since 1970.
    package var modifiedSeconds: Int64 = 0
    /// The rest of the modification time.
    package var modifiedNanoseconds: UInt32 = 0
    /// Number of names the file has.
    package var links: UInt32 = 0
    /// The user whose file it is.
    package var owner: UInt32 = 0
    /// The permission bits.
    package var mode: UInt32 = 0
    /// Bytes that the file takes on the disk.
    package var allocated: Int64 = 0

    /// Nothing known.
    package init() {}

    /// Whether nothing was written since, as far as the file's length and time tell.
    func isUnchanged(since earlier: FileStatus) -> Bool {
        size == earlier.size && modifiedSeconds == earlier.modifiedSeconds
            && modifiedNanoseconds == earlier.modifiedNanoseconds
    }
}

/// Which file it is, whatever its name. A copied or restored file has another one.
package struct FileIdentity: Hashable, Sendable {
    /// The device; its numbers may change when the machine starts again.
    package var device: UInt64 = 0
    /// The inode's number on its device; file systems use numbers again.
    package var inode: UInt64 = 0
    /// When the inode was made, seconds since 1970; 0 where the file system does not keep it.
    package var birthSeconds: Int64 = 0
    /// The rest of the birth time.
    package var birthNanoseconds: UInt32 = 0

    /// Nothing known.
    package init() {}

    /// Whether both are the same inode, also after the machine started again (device numbers may change then).
    package func isSameFile(as other: FileIdentity) -> Bool {
        inode == other.inode && birthSeconds == other.birthSeconds && birthNanoseconds == other.birthNanoseconds
    }
}

/// What `fstatfs(2)` tells of a file system.
package struct FileSystemSpace: Sendable {
    /// Bytes that an ordinary user may still take.
    package var available = Int64.max
    /// Bytes of the file system.
    package var total = Int64.max
    /// The file system's magic number (`statfs(2)`).
    package var type: Int64 = 0

    /// Nothing known.
    package init() {}
}
