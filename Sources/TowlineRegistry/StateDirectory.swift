import Glibc
import Synchronization
internal import TowlineCore

/// The state directory of the registry: its files, their modes, and the lock that admits one process.
///
/// The lock file contains a line, `PID STATE`. The state is `open` from the first durable commit of a process until
/// the process closes the database properly, so that the next process can detect that this process was killed.
final class StateDirectory: Sendable {
    let path: String
    /// `true` if the last process that opened the registry did not close it.
    let wasLeftOpen: Bool
    /// The descriptor of the lock file; -1 after the release.
    private let lock: Mutex<Int32>
    /// The directories of all downloads that were ever added.
    private let known = Mutex<Set<String>>([])

    var database: String { path + "/registry.sqlite" }
    var log: String { database + "-wal" }
    var sharedMemory: String { database + "-shm" }
    private var directories: String { path + "/directories" }

    /// Creates the directory if needed, and takes the lock.
    init(_ path: String) throws(TowlineError) {
        self.path = path
        try StateDirectory.make(path)
        let lock = try StateDirectory.takeLock(path)
        wasLeftOpen = StateDirectory.words(lock).last == "open"
        self.lock = Mutex(lock)
        // The process that got the lock writes its process number and keeps the state.
        try note(wasLeftOpen ? "open" : "closed")
        try readDirectories()
    }

    deinit { release() }

    /// Releases the lock, so that another process can open the registry.
    func release() {
        lock.withLock { lock in
            if lock >= 0 { close(lock) }
            lock = -1
        }
    }

    /// Creates the directory, the lock file and the list of directories again if they were deleted or replaced while
    /// the registry is open. Throws `registryBusy` if another process has taken the lock of a new lock file.
    func restore() throws(TowlineError) {
        try StateDirectory.make(path)
        let held = lock.withLock { FileCall.identity($0) }
        if held == nil || held != FileCall.identity(path: path + "/registry.lock") {
            let taken = try StateDirectory.takeLock(path)
            lock.withLock { lock in
                close(lock)
                lock = taken
            }
            try note("open")
        }
        if !FileCall.exists(directories) { try append(known.withLock { $0 }) }
    }

    /// Opens and locks the lock file. Returns its descriptor.
    private static func takeLock(_ path: String) throws(TowlineError) -> Int32 {
        let lockPath = path + "/registry.lock"
        let lock = try FileCall.open(lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            let words = StateDirectory.words(lock)
            close(lock)
            guard number == EWOULDBLOCK else { throw FileCall.error("cannot lock", lockPath, number) }
            throw StateDirectory.busy(path, words.first.flatMap { Int32($0) })
        }
        return lock
    }

    private static func make(_ path: String) throws(TowlineError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw TowlineError(
                .unusableDestination,
                "the path of the state directory is empty or contains a NUL character. Give another path")
        }
        var parent = ""
        let components = path.split(separator: "/")
        for (index, component) in components.enumerated() {
            parent += (index == 0 && !path.hasPrefix("/") ? "" : "/") + component
            // An existing directory keeps its mode: it may have other contents.
            guard mkdir(parent, index == components.count - 1 ? 0o700 : 0o755) == 0 || errno == EEXIST || errno == EROFS
            else {
                let number = errno
                throw FileCall.failure(
                    "the list of downloads cannot be opened because the directory \(parent) cannot be created "
                        + "(\(FileCall.reason(number))). Change the permissions, or use another state directory",
                    number)
            }
        }
        // The list of downloads contains commands to run: no other user may have written the list.
        var status = stat()
        guard stat(path, &status) == 0, status.st_uid == geteuid() else {
            throw FileCall.failure(
                "the list of downloads cannot be opened because the state directory \(path) belongs to another user. "
                    + "Run towd as this user, or use another state directory",
                EPERM)
        }
        guard status.st_mode & 0o022 == 0 else {
            throw FileCall.failure(
                "the list of downloads cannot be opened because other users can write to the state directory \(path). "
                    + "Run: chmod go-w '\(path.replacing("'", with: "'\\''"))'",
                EPERM)
        }
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            let number = errno
            throw FileCall.failure(
                "the list of downloads cannot be opened because the state directory \(path) is not readable and "
                    + "writable (\(FileCall.reason(number))). Change its permissions, or use another state directory",
                number)
        }
    }

    private static func busy(_ path: String, _ process: Int32?) -> TowlineError {
        let owner =
            switch process {
            case getpid(): "this process"
            // The lock may belong to a child of a process that has ended (flock(2)).
            case let process? where kill(process, 0) == 0 || errno == EPERM: "process \(process)"
            default: "another process"
            }
        return TowlineError(
            .registryBusy,
            "\(path): \(owner) already uses this state directory. Stop that process or use another state directory")
    }

    // MARK: Reserved space

    /// The size in bytes of the disk space that only removals may use.
    private static let reservedCount = 1 << 20
    private var reserve: String { path + "/reserve" }

    /// Reserves disk space, so that downloads can be removed from the list while the disk is full. Reserves none if the
    /// disk is full or its file system cannot.
    func reserveSpace() {
        guard FileCall.size(path: reserve) < Self.reservedCount,
            let file = try? FileCall.open(reserve, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
        else { return }
        defer { close(file) }
        if posix_fallocate(file, 0, off_t(Self.reservedCount)) != 0 { ftruncate(file, 0) }
    }

    /// Frees the reserved space.
    /// - Returns: `false` if none was reserved.
    func releaseSpace() -> Bool { FileCall.size(path: reserve) > 0 && unlink(reserve) == 0 }

    // MARK: The lock file's line

    private static func words(_ lock: Int32) -> [Substring] {
        let line = FileCall.read(lock, count: 64, at: 0).prefix { $0 != 0x0A }
        return String(decoding: line, as: UTF8.self).split(separator: " ")
    }

    /// Writes the process number and a state to the lock file. Durable on return.
    func note(_ state: String) throws(TowlineError) {
        var line = Array("\(getpid()) \(state)".utf8)
        line += Array(repeating: 0x20, count: max(0, 31 - line.count)) + [0x0A]
        let isDone = lock.withLock { pwrite($0, line, line.count, 0) == line.count && fsync($0) == 0 }
        guard isDone else {
            throw FileCall.error("cannot write", path + "/registry.lock", errno)
        }
    }

    // MARK: The list of directories

    /// The directories of all downloads that were ever added, used to find journals if the database is lost.
    var knownDirectories: [String] { known.withLock { $0.sorted() } }

    /// Stores directories durably. Called before the downloads in these directories are stored.
    func remember(_ paths: Set<String>) throws(TowlineError) {
        let missing = known.withLock { paths.subtracting($0) }
        if missing.isEmpty { return }
        try append(missing)
        known.withLock { $0.formUnion(missing) }
    }

    private func append(_ paths: Set<String>) throws(TowlineError) {
        let isNew = access(directories, F_OK) != 0
        let file = try FileCall.open(directories, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        defer { close(file) }
        // The first line end completes a line that a power loss cut off.
        let text = Array(("\n" + paths.sorted().map { StateDirectory.escaped($0) + "\n" }.joined()).utf8)
        guard write(file, text, text.count) == text.count, fsync(file) == 0 else {
            throw FileCall.error("cannot write", directories, errno)
        }
        if isNew { try FileCall.synchronize(directory: path) }
    }

    private func readDirectories() throws(TowlineError) {
        let found = try StateDirectory.directories(in: directories)
        known.withLock { $0 = found }
    }

    /// Returns the directories of the downloads in a state directory; empty if the list is missing or unreadable.
    static func knownDirectories(in path: String) -> Set<String> { (try? directories(in: path + "/directories")) ?? [] }

    private static func directories(in directories: String) throws(TowlineError) -> Set<String> {
        guard access(directories, F_OK) == 0 else { return [] }
        let file = try FileCall.open(directories, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        defer { close(file) }
        let bytes = FileCall.read(file, count: FileCall.size(file), at: 0)
        // A line without a line end was cut off.
        let whole = bytes.prefix(through: bytes.lastIndex(of: 0x0A) ?? -1)
        return Set(whole.split(separator: 0x0A).map { unescaped(String(decoding: $0, as: UTF8.self)) })
    }

    private static func escaped(_ path: String) -> String {
        path.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }

    private static func unescaped(_ line: String) -> String {
        var path = ""
        var isEscaped = false
        for character in line.unicodeScalars {
            if isEscaped {
                path.unicodeScalars.append(character == "n" ? "\n" : character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else {
                path.unicodeScalars.append(character)
            }
        }
        return path
    }
}
