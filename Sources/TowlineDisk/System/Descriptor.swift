import CTowline
import Glibc
import Synchronization
internal import TowlineCore

/// A file descriptor that is closed exactly once: after `close` was called and the last system call in progress has
/// ended. The system may give its number to another file only then, so that file is never written to by mistake.
/// Repeats interrupted calls and completes short writes.
final class Descriptor: Sendable {
    /// The path of the directory that contains `name`; `nil` if `name` is the whole path.
    private let directory: String?
    private let name: String
    let syscall: any Syscall
    private let number: Int32
    /// The record of calls that the file system does not support, which notifies the user; `nil` for files without
    /// notices.
    private let shortfalls: Shortfalls?
    /// The number of failed syncs of the file. Increased before a later successful sync is reported, so that its caller
    /// can detect the failure, which the kernel reports only once.
    let failedSyncs = Atomic<Int>(0)
    /// `true` if the file system cannot take bytes from a pipe (splice(2)), so that they are copied through memory.
    let refusesPipes = Atomic<Bool>(false)
    /// The number of system calls in progress on the descriptor, plus `closing` after `close` was called.
    private let users = Atomic<Int>(0)
    /// The bit of `users` that `close` sets, so that no new system call begins on the descriptor.
    private static let closing = 1 << 62
    /// The cached identity of the file, which does not change; `nil` until it is needed.
    private let known = Mutex<FileIdentity?>(nil)

    /// Takes over an open file descriptor with this number.
    ///
    /// - Parameter path: the whole path, or the name in `directory` if that is not `nil`.
    init(
        _ number: Int32, path: String, in directory: String? = nil, syscall: any Syscall, shortfalls: Shortfalls? = nil
    ) {
        self.shortfalls = shortfalls
        self.number = number
        self.name = path
        self.directory = directory
        self.syscall = syscall
    }

    /// The path of the file for error messages and notices. Computed only when needed.
    var path: String { directory.map { Folder.path(of: name, in: $0) } ?? name }

    deinit { close() }

    /// Records that the file system lacks the ability `kind`, because a system call for it failed. The user gets a
    /// notice.
    func note(_ kind: Shortfalls.Kind) { shortfalls?.note(kind, in: directory ?? name) }

    /// Returns the number of the file descriptor, which stays open until `release`. Throws if `close` was called
    /// before.
    func acquire() throws(TowlineError) -> Int32 {
        var seen = users.load(ordering: .relaxed)
        while true {
            guard seen & Descriptor.closing == 0 else { throw .closed(path) }
            let (exchanged, original) = users.weakCompareExchange(
                expected: seen, desired: seen + 1, ordering: .acquiring)
            if exchanged { return number }
            seen = original
        }
    }

    /// Makes this descriptor refer to the file of `other` (dup3(2)), which must have the same bytes.
    func become(_ other: Descriptor) throws(TowlineError) {
        let code = try call { own in
            guard let number = try? other.acquire() else { return -EBADF }
            defer { other.release() }
            return towline_become(number, own)
        }
        guard code >= 0 else { throw .opening(path, -code) }
        known.withLock { $0 = nil }
    }

    /// Ends a use of the descriptor's number: each call of `acquire` needs one call of this function. The last use
    /// after `close` closes the descriptor.
    func release() {
        let (_, now) = users.subtract(1, ordering: .releasing)
        if now == Descriptor.closing { _ = syscall.close(number) }
    }

    /// Closes the descriptor, now or when the last system call in progress ends, which releases the file's lock. May be
    /// called again.
    func close() {
        let (before, _) = users.bitwiseOr(Descriptor.closing, ordering: .acquiringAndReleasing)
        if before == 0 { _ = syscall.close(number) }
    }
}

/// The system calls on the open file, with repeated interrupted calls and completed short writes.
extension Descriptor {
    /// Writes all of `bytes` at `offset`. Throws a disk error if that fails.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        guard offset >= 0, !offset.addingReportingOverflow(Int64(bytes.count)).overflow else {
            throw .writing(path, EFBIG)
        }
        let number = try acquire()
        defer { release() }
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = syscall.pwrite(number, rest, offset + Int64(done))
            if count == -Int(EINTR) { continue }
            guard count > 0 else { throw .writing(path, count < 0 ? Int32(-count) : EIO) }
            done += count
        }
    }

    /// Writes the first `count` bytes of a pipe, which must contain at least that many, at `offset`. Uses splice(2), or
    /// copies through memory if the file system does not support that.
    func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError) {
        guard offset >= 0, !offset.addingReportingOverflow(Int64(count)).overflow else { throw .writing(path, EFBIG) }
        let number = try acquire()
        defer { release() }
        var done = 0
        while done < count {
            if refusesPipes.load(ordering: .relaxed) {
                return try copy(from: pipe, count: count - done, at: offset + Int64(done))
            }
            let moved = syscall.splice(number, pipe, count - done, offset + Int64(done))
            if moved == -Int(EINTR) { continue }
            if Int32(clamping: moved).isLacking {
                refusesPipes.store(true, ordering: .relaxed)
                continue
            }
            guard moved > 0 else { throw .writing(path, moved < 0 ? Int32(-moved) : EIO) }
            done += moved
        }
    }

    /// Copies bytes from a pipe to the file through memory. Uses read(2) directly, because `Syscall` only covers files.
    private func copy(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError) {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes { Glibc.read(pipe, $0.baseAddress.map { $0 + done }, count - done) }
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { throw .writing(path, got < 0 ? errno : EIO) }
            done += got
        }
        try write(bytes, at: offset)
    }

    /// Writes all of `bytes` at `offset`. Throws a disk error if that fails.
    func write(_ bytes: [UInt8], at offset: Int64) throws(TowlineError) {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(TowlineError) in try write(raw, at: offset) }
        }
        try result.get()
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes read.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        let number = try acquire()
        defer { release() }
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = syscall.pread(number, rest, offset + Int64(done))
            if count == -Int(EINTR) { continue }
            guard count >= 0 else { throw .reading(path, Int32(-count)) }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Returns up to `count` bytes that begin at `offset`; fewer only at the end of the file.
    func read(_ count: Int, at offset: Int64) throws(TowlineError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let length = bytes.withUnsafeMutableBytes { raw in
            Result { () throws(TowlineError) in try read(into: raw, at: offset) }
        }
        return Array(bytes.prefix(try length.get()))
    }

    /// Makes the bytes of the file durable with `fdatasync`, and blocks meanwhile. Throws if the sync fails. If many
    /// files may wait, use `SyncQueue` instead.
    func synchronizeData() throws(TowlineError) {
        let code = try synchronize(.data)
        guard code >= 0 else { throw .synchronizing(path, -code) }
    }

    /// Calls `fdatasync` or `fsync`, as `extent` requires, or the best alternative that the file system supports, up to
    /// a sync of all disks: it may lack `fsync` for directories of some shared folders (EINVAL, fsync(2)), and of
    /// directories without read access (EBADF).
    ///
    /// - Returns: 0 or `-errno`.
    func synchronize(_ extent: SyncQueue.Extent) throws(TowlineError) -> Int32 {
        var code = extent == .data ? try call { syscall.fdatasync($0) } : -EINVAL
        if code.isLackingOrForbidden { code = try call { syscall.fsync($0) } }
        guard code.isLackingOrForbidden || code == -EBADF else { return code }
        note(code == -EBADF ? .directory : .sync)
        code = try call { syscall.syncfs($0) }
        guard code.isLackingOrForbidden || code == -EBADF else { return code }
        syscall.syncAll()
        return 0
    }

    /// Makes the file and its metadata durable with `fsync`, and blocks meanwhile. Throws if the sync fails.
    func synchronizeAll() throws(TowlineError) {
        let code = try synchronize(.everything)
        guard code >= 0 else { throw .synchronizing(path, -code) }
    }

    /// Sets the length of the file (ftruncate(2)).
    func truncate(to length: Int64) throws(TowlineError) {
        let code = try call { syscall.ftruncate($0, length) }
        guard code >= 0 else { throw .truncating(path, -code) }
    }

    /// Extends the file to `length` bytes. If the file system cannot set lengths, writes a zero byte at the end.
    func extend(to length: Int64) throws(TowlineError) {
        let code = try call { syscall.ftruncate($0, length) }
        if code.isLackingOrForbidden { return try write([0], at: length - 1) }
        guard code >= 0 else { throw .truncating(path, -code) }
    }

    /// Returns the current status of the file (statx(2)), such as its length and its number of names.
    func status() throws(TowlineError) -> FileStatus {
        var status = FileStatus()
        let code = try call { syscall.status($0, "", &status) }
        guard code >= 0 else { throw .examining(path, -code) }
        let identity = status.identity
        known.withLock { $0 = identity }
        return status
    }

    /// Returns the identity of the file. Calls the system only the first time, then uses the cached identity.
    func identity() throws(TowlineError) -> FileIdentity {
        if let known = known.withLock({ $0 }) { return known }
        return try status().identity
    }

    /// Takes the exclusive lock of the file (flock(2)). Does not wait for another process. Waits up to 0.6 s for a lock
    /// of this process that is about to be released: a transfer that ended keeps it until its last write has returned,
    /// and a starting child has it until its program begins (`fork(2)`). Both take milliseconds; a running download
    /// keeps its lock longer than this.
    ///
    /// - Returns: `true` if this descriptor has the lock now.
    func lock() throws(TowlineError) -> Bool {
        for _ in 0..<60 {
            if try tryLock() { return true }
            guard LockOwner.process(locking: self) ?? getpid() == getpid() else { return false }
            var pause = timespec(tv_sec: 0, tv_nsec: 10_000_000)
            nanosleep(&pause, nil)
        }
        return false
    }

    private func tryLock() throws(TowlineError) -> Bool {
        let code = try call { syscall.lock($0) }
        if code == -EWOULDBLOCK { return false }
        // Lustre and shared folders without locks: no other process can lock the file there.
        if code.isLacking || code == -ENOLCK {
            note(.lock)
            return true
        }
        guard code >= 0 else { throw .locking(path, -code) }
        return true
    }

    /// Calls `body` with the number of the file descriptor, and repeats the call while a signal interrupts it (EINTR).
    /// Returns the result of `body`, which is `-errno` on failure.
    func call(_ body: (Int32) -> Int32) throws(TowlineError) -> Int32 {
        let number = try acquire()
        defer { release() }
        while true {
            let code = body(number)
            if code != -EINTR { return code }
        }
    }
}
