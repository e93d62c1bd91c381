import Glibc
import Synchronization
internal import TowlineCore

/// The directory that the registry lives in: its files, their modes, and the lock that lets one process in.
///
/// The lock file holds a line, `PID STATE`. The state is `open` from the first durable commit of a process until it
/// closes the database in order, so that the next one can tell that a process was killed in between.
final class StateDirectory: Sendable {
    let path: String
    /// Whether the last process that had the registry open did not close it.
    let wasLeftOpen: Bool
    /// The lock file's descriptor; -1 once it was let go.
    private let lock: Mutex<Int32>
    /// The directories that downloads were put into.
    private let known = Mutex<Set<String>>([])

    var database: String { path + "/registry.sqlite" }
    var log: String { database + "-wal" }
    var sharedMemory: String { database + "-shm" }
    private var directories: String { path + "/directories" }

    /// Makes the directory if need be, and takes the lock.
    init(_ path: String) throws(TowlineError) {
        self.path = path
        try StateDirectory.make(path)
        let lockPath = path + "/registry.lock"
        let lock = try FileCall.open(lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC)
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            let words = StateDirectory.words(lock)
            close(lock)
            guard number == EWOULDBLOCK else { throw FileCall.error("cannot lock", lockPath, number) }
            throw StateDirectory.busy(path, words.first.flatMap { Int32($0) })
        }
        wasLeftOpen = StateDirectory.words(lock).last == "open"
        self.lock = Mutex(lock)
        // Whoever is let in writes its number, and leaves the state as it found it.
        try note(wasLeftOpen ? "open" : "closed")
        try readDirectories()
    }

    deinit { release() }

    /// Lets others in.
    func release() {
        lock.withLock { lock in
            if lock >= 0 { close(lock) }
            lock = -1
        }
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
            // What is there already keeps its mode: it may be a directory with other things in it.
            guard mkdir(parent, index == components.count - 1 ? 0o700 : 0o755) == 0 || errno == EEXIST || errno == EROFS
            else {
                let number = errno
                throw FileCall.failure(
                    "the list of downloads cannot be opened because the directory \(parent) cannot be created "
                        + "(\(FileCall.reason(number))). Change the permissions, or use another state directory",
                    number)
            }
        }
        // The list of downloads holds commands to run: no other user may have written it.
        var status = stat()
        guard stat(path, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else {
            throw FileCall.failure(
                "the list of downloads cannot be opened because the state directory \(path) belongs to another user, or "
                    + "other users can write to it. Run chmod go-w on it, or use another state directory",
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
            case let process?: "process \(process)"
            case nil: "another process"
            }
        return TowlineError(
            .registryBusy,
            "\(path): \(owner) already uses this state directory. Stop that process or use another state directory")
    }

    // MARK: The lock file's line

    private static func words(_ lock: Int32) -> [Substring] {
        let line = FileCall.read(lock, count: 64, at: 0).prefix { $0 != 0x0A }
        return String(decoding: line, as: UTF8.self).split(separator: " ")
    }

    /// Durable when it returns.
    func note(_ state: String) throws(TowlineError) {
        var line = Array("\(getpid()) \(state)".utf8)
        line += Array(repeating: 0x20, count: max(0, 31 - line.count)) + [0x0A]
        let isDone = lock.withLock { pwrite($0, line, line.count, 0) == line.count && fsync($0) == 0 }
        guard isDone else {
            throw FileCall.error("cannot write", path + "/registry.lock", errno)
        }
    }

    // MARK: The list of directories

    /// Where downloads were put, for when the database is lost.
    var knownDirectories: [String] { known.withLock { $0.sorted() } }

    /// Remembers directories durably, before the downloads in them are.
    func remember(_ paths: Set<String>) throws(TowlineError) {
        let missing = known.withLock { paths.subtracting($0) }
        if missing.isEmpty { return }
        let isNew = access(directories, F_OK) != 0
        let file = try FileCall.open(directories, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC)
        defer { close(file) }
        // A line that a power loss cut off ends here.
        let text = Array(("\n" + missing.sorted().map { StateDirectory.escaped($0) + "\n" }.joined()).utf8)
        guard write(file, text, text.count) == text.count, fsync(file) == 0 else {
            throw FileCall.error("cannot write", directories, errno)
        }
        if isNew { try FileCall.synchronize(directory: path) }
        known.withLock { $0.formUnion(missing) }
    }

    private func readDirectories() throws(TowlineError) {
        let found = try StateDirectory.directories(in: directories)
        known.withLock { $0 = found }
    }

    /// The directories that the list in a state directory uses.
    static func knownDirectories(in path: String) -> Set<String> { (try? directories(in: path + "/directories")) ?? [] }

    private static func directories(in directories: String) throws(TowlineError) -> Set<String> {
        guard access(directories, F_OK) == 0 else { return [] }
        let file = try FileCall.open(directories, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        defer { close(file) }
        let bytes = FileCall.read(file, count: FileCall.size(file), at: 0)
        // What has no line end was cut off.
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
