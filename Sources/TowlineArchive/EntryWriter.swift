import Glibc
internal import TowlineCore
internal import TowlineThreads

/// A writer of entries below a directory that no other process writes to. Opens each directory of a path with an
/// `openat` that follows no link.
final class EntryWriter {
    private let root: Int32
    private let archive: String
    private var budget: UnpackBudget
    private let flag: CancelFlag
    /// The path of the directory of the last entry, which stays open because most entries are in the same directory.
    private var parentPath: [String] = []
    private var parent: Int32
    /// The symbolic links, which are created last, so that no entry is written through a link.
    private var links: [(place: EntryPath, target: String)] = []

    var entries: Int { budget.entries }
    var bytes: Int64 { budget.bytes }

    init(root: Int32, archive: String, budget: UnpackBudget, flag: CancelFlag) {
        self.root = root
        self.archive = archive
        self.budget = budget
        self.flag = flag
        parent = root
    }

    deinit {
        if parent != root { Glibc.close(parent) }
    }

    /// Creates the entry that `head` describes, with the bytes from the reader.
    func write(_ head: ArchiveReader.Head, from reader: ArchiveReader) throws(TowlineError) {
        try flag.check(archive)
        try budget.check(head.stream)
        let path = try place(head.path)
        guard let name = path.components.last else {
            guard head.kind == .directory else {
                throw .refusing(
                    archive,
                    "the downloaded archive was not unpacked because it contains a file or link with the invalid name "
                        + "\".\". Unpack it with another program")
            }
            return try drain(reader, path)
        }
        switch head.kind {
        case .file(let isExecutable):
            try budget.addEntry()
            try enter(path.components.dropLast())
            try writeFile(name, path, isExecutable, head, reader)
        case .directory:
            try enter(path.components[...])
            try drain(reader, path)
        case .symbolicLink(let target):
            try budget.addEntry()
            try budget.addBytes(Int64(target.count))
            links.append((path, try refusing { () throws(EntryPath.Refusal) in try path.linkTarget(target) }))
            try drain(reader, path)
        case .hardLink(let target):
            try budget.addEntry()
            try drain(reader, path)
            try link(name, path, to: try place(target))
        case .other:
            throw .refusing(
                archive,
                "the downloaded archive was not unpacked because it contains \"\(shown(path))\", which is a device, "
                    + "FIFO or socket. If you trust the archive, unpack it with another program")
        }
    }

    /// Creates the symbolic links. Called once, after all other entries.
    func finish() throws(TowlineError) {
        for (path, target) in links {
            try flag.check(archive)
            guard let name = path.components.last else { continue }
            try enter(path.components.dropLast())
            guard symlinkat(target, parent, name) == 0 else { throw failure("cannot create", path, errno) }
        }
    }

    private func place(_ bytes: [UInt8]) throws(TowlineError) -> EntryPath {
        let depth = budget.limits.depth
        return try refusing { () throws(EntryPath.Refusal) in try EntryPath(bytes, maximumDepth: depth) }
    }

    private func refusing<Value>(_ body: () throws(EntryPath.Refusal) -> Value) throws(TowlineError) -> Value {
        do throws(EntryPath.Refusal) { return try body() } catch { throw .refusing(archive, error.reason) }
    }

    private func shown(_ path: EntryPath) -> String { TerminalSafeText.make(path.text, width: 120) }

    private func failure(_ action: String, _ path: EntryPath, _ number: Int32) -> TowlineError {
        switch number {
        case EEXIST:
            .refusing(
                archive,
                "the downloaded archive was not unpacked because it contains \"\(shown(path))\" twice. "
                    + "Unpack it with another program")
        case ENOTDIR, ELOOP:
            .refusing(
                archive,
                "the downloaded archive was not unpacked because it contains \"\(shown(path))\" both as a directory "
                    + "and as a file or link. Unpack it with another program")
        default: .unpacking(action, "\"\(shown(path))\" from \(archive)", number)
        }
    }

    /// Reads an entry that is not a file, and refuses any bytes: skipped bytes would cost time that no limit counts.
    private func drain(_ reader: ArchiveReader, _ path: EntryPath) throws(TowlineError) {
        try reader.read { (bytes, _) throws(TowlineError) in
            guard bytes.isEmpty else {
                throw .refusing(
                    archive,
                    "the downloaded archive was not unpacked because it is invalid: \"\(shown(path))\" is a "
                        + "directory or link, but contains file data. Unpack it with another program")
            }
        }
    }

    // MARK: Directories

    /// Sets the directory for the next entries. Creates the directories of `components` that do not exist.
    private func enter(_ components: ArraySlice<String>) throws(TowlineError) {
        guard !EntryPath.isSame(parentPath, components) else { return }
        if parent != root { Glibc.close(parent) }
        parent = root
        parentPath = []
        var current = root
        for (depth, component) in components.enumerated() {
            if mkdirat(current, component, 0o777) == 0 {
                try budget.addEntry()
            } else if errno != EEXIST {
                let number = errno
                if current != root { Glibc.close(current) }
                throw failure("cannot create", path(components.prefix(depth + 1)), number)
            }
            let next = openat(current, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            let number = errno
            if current != root { Glibc.close(current) }
            guard next >= 0 else { throw failure("cannot open", path(components.prefix(depth + 1)), number) }
            current = next
        }
        parent = current
        parentPath = Array(components)
    }

    private func path(_ components: ArraySlice<String>) -> EntryPath { EntryPath(safe: Array(components)) }

    // MARK: Files

    private func writeFile(
        _ name: String, _ path: EntryPath, _ isExecutable: Bool, _ head: ArchiveReader.Head, _ reader: ArchiveReader
    ) throws(TowlineError) {
        // The umask applies. An archive cannot set the setuid, setgid and sticky bits.
        let mode: mode_t = isExecutable ? 0o777 : 0o666
        let file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard file >= 0 else { throw failure("cannot create", path, errno) }
        var end: Int64 = 0
        let outcome = Result { () throws(TowlineError) in
            try reader.read { (bytes, offset) throws(TowlineError) in
                try flag.check(archive)
                guard offset >= end else {
                    throw .damaged(
                        archive,
                        "the downloaded archive was not unpacked because it is damaged: the data blocks of "
                            + "\"\(shown(path))\" overlap. Download the archive again")
                }
                let (next, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
                try budget.addBytes(overflow ? .max : next - end)
                try write(bytes, at: offset, to: file, path)
                end = next
            }
            if head.size > end { try extend(file, from: end, to: head.size, path) }
            if let modified = head.modified { date(file, modified) }
        }
        // Some file systems report a full disk only when the file is closed.
        let closed = Glibc.close(file)
        try outcome.get()
        guard closed == 0 else { throw failure("cannot write", path, errno) }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, to file: Int32, _ path: EntryPath
    ) throws(TowlineError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = pwrite(file, rest.baseAddress, rest.count, off_t(offset) + done)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("cannot write", path, count < 0 ? errno : EIO) }
            done += count
        }
    }

    /// Extends a sparse file that ends in a hole to its complete size.
    private func extend(_ file: Int32, from end: Int64, to size: Int64, _ path: EntryPath) throws(TowlineError) {
        try budget.addBytes(size - end)
        guard ftruncate(file, off_t(size)) == 0 else { throw failure("cannot extend", path, errno) }
    }

    /// Sets the modification time. Failures are ignored, because a file without this time is still correct.
    private func date(_ file: Int32, _ modified: Int) {
        let omit = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)  // UTIME_OMIT of <sys/stat.h>.
        _ = futimens(file, [omit, timespec(tv_sec: modified, tv_nsec: 0)])
    }

    /// Creates a hard link to an earlier file. No symbolic link exists yet that could redirect the path.
    private func link(_ name: String, _ path: EntryPath, to target: EntryPath) throws(TowlineError) {
        let refusal = TowlineError.refusing(
            archive,
            """
            the downloaded archive was not unpacked because its hard link "\(shown(path))" points to \
            "\(shown(target))", which is not an earlier file of the archive. If you trust the archive, unpack it with \
            another program
            """)
        guard let targetName = target.components.last else { throw refusal }
        try enter(path.components.dropLast())
        let folder = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw failure("cannot open", path, errno) }
        defer { Glibc.close(folder) }
        try enter(target.components.dropLast())
        var status = stat()
        guard fstatat(parent, targetName, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG
        else { throw refusal }
        guard linkat(parent, targetName, folder, name, 0) == 0 else {
            throw failure("cannot create", path, errno)
        }
    }
}

extension EntryPath {
    /// Creates a path from names that are already safe.
    init(safe components: [String]) { self.components = components }
}
