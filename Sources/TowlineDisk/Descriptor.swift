import CTowline
import Glibc
import Synchronization
internal import TowlineCore

/// A file descriptor that is closed once, when it was told to and nobody is in a call with it any more: a number
/// that another file has by then is never written to. Retries and short writes are dealt with here.
final class Descriptor: Sendable {
    /// The directory's path, and the name in it; without one, all of the path.
    private let directory: String?
    private let name: String
    let syscall: any Syscall
    private let number: Int32
    /// Hears of calls that the file system does not offer.
    private let shortfalls: Shortfalls?
    /// Syncs that failed, counted before anybody hears of a later one's success.
    let failedSyncs = Atomic<Int>(0)
    /// The file system cannot take bytes from a pipe (splice(2)).
    let refusesPipes = Atomic<Bool>(false)
    /// The number of calls in progress, and `closing` once it was told to close.
    private let users = Atomic<Int>(0)
    private static let closing = 1 << 62
    /// Which file it is, once that was asked: it never is another.
    private let known = Mutex<FileIdentity?>(nil)

    /// - Parameter path: with a directory, a name in it.
    init(
        _ number: Int32, path: String, in directory: String? = nil, syscall: any Syscall, shortfalls: Shortfalls? = nil
    ) {
        self.shortfalls = shortfalls
        self.number = number
        self.name = path
        self.directory = directory
        self.syscall = syscall
    }

    /// For messages, and put together for them alone.
    var path: String { directory.map { Folder.path(of: name, in: $0) } ?? name }

    deinit { close() }

    /// Notes that a call failed because the file system does not offer it.
    func note(_ kind: Shortfalls.Kind) { shortfalls?.note(kind, in: directory ?? name) }

    /// The number, safe to use until `release`.
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

    /// Makes the number that of another file, which has the same bytes.
    func become(_ other: Descriptor) throws(TowlineError) {
        let code = try call { own in
            guard let number = try? other.acquire() else { return -EBADF }
            defer { other.release() }
            return towline_become(number, own)
        }
        guard code >= 0 else { throw .opening(path, -code) }
        known.withLock { $0 = nil }
    }

    /// Ends what `acquire` began.
    func release() {
        let (_, now) = users.subtract(1, ordering: .releasing)
        if now == Descriptor.closing { _ = syscall.close(number) }
    }

    /// Closes, now or when the last call in progress ends. Locks go with it.
    func close() {
        let (before, _) = users.bitwiseOr(Descriptor.closing, ordering: .acquiringAndReleasing)
        if before == 0 { _ = syscall.close(number) }
    }
}

extension Descriptor {
    /// Writes all of `bytes`.
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

    /// Writes the first `count` bytes of a pipe, which holds that many or more.
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

    /// By way of memory. A pipe is no file that `Syscall` is there for.
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

    /// Writes all of `bytes`.
    func write(_ bytes: [UInt8], at offset: Int64) throws(TowlineError) {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(TowlineError) in try write(raw, at: offset) }
        }
        try result.get()
    }

    /// Fills the buffer; fewer bytes only at the end of the file.
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

    /// Up to `count` bytes.
    func read(_ count: Int, at offset: Int64) throws(TowlineError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let length = bytes.withUnsafeMutableBytes { raw in
            Result { () throws(TowlineError) in try read(into: raw, at: offset) }
        }
        return Array(bytes.prefix(try length.get()))
    }

    /// `fdatasync`, blocking. Where many files may wait, `SyncQueue` is the way.
    func synchronizeData() throws(TowlineError) {
        let code = try synchronize(.data)
        guard code >= 0 else { throw .synchronizing(path, -code) }
    }

    /// `fdatasync` or `fsync`, or what the file system offers instead, up to a sync of everything: it does not offer
    /// `fsync` for directories of some shared folders (EINVAL, fsync(2)), and for none that cannot be read (EBADF).
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

    /// `fsync`, blocking.
    func synchronizeAll() throws(TowlineError) {
        let code = try synchronize(.everything)
        guard code >= 0 else { throw .synchronizing(path, -code) }
    }

    func truncate(to length: Int64) throws(TowlineError) {
        let code = try call { syscall.ftruncate($0, length) }
        guard code >= 0 else { throw .truncating(path, -code) }
    }

    /// Makes the file longer, by a byte at its end where the file system cannot set lengths.
    func extend(to length: Int64) throws(TowlineError) {
        let code = try call { syscall.ftruncate($0, length) }
        if code.isLackingOrForbidden { return try write([0], at: length - 1) }
        guard code >= 0 else { throw .truncating(path, -code) }
    }

    func status() throws(TowlineError) -> FileStatus {
        var status = FileStatus()
        let code = try call { syscall.status($0, "", &status) }
        guard code >= 0 else { throw .examining(path, -code) }
        let identity = status.identity
        known.withLock { $0 = identity }
        return status
    }

    /// Which file it is. Asked for once.
    func identity() throws(TowlineError) -> FileIdentity {
        if let known = known.withLock({ $0 }) { return known }
        return try status().identity
    }

    /// Takes the lock without waiting, but for a lock of this very process that is about to go: a transfer that ended
    /// keeps it until its last write has returned, and a child that is being started has it until its program begins
    /// (`fork(2)`). That takes milliseconds; a download that runs keeps it longer than anybody waits here.
    ///
    /// - Returns: whether we have it now.
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
        // Lustre and shared folders without locks: no other process can hold one there.
        if code.isLacking || code == -ENOLCK {
            note(.lock)
            return true
        }
        guard code >= 0 else { throw .locking(path, -code) }
        return true
    }

    /// Runs a call until no signal interrupts it.
    func call(_ body: (Int32) -> Int32) throws(TowlineError) -> Int32 {
        let number = try acquire()
        defer { release() }
        while true {
            let code = body(number)
            if code != -EINTR { return code }
        }
    }
}
