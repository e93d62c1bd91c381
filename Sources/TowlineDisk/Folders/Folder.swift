import CTowline
import Glibc
import Synchronization
internal import TowlineCore

/// An open directory with the files of downloads. Names are looked up through its descriptor, even after the directory
/// is moved.
final class Folder: Sendable {
    /// The path with which the directory was opened, for messages and errors that name a file in it.
    let path: String
    let descriptor: Descriptor
    /// The identity of the directory on its file system, which does not depend on its path.
    let identity: FileIdentity
    /// The ID of the user who owns the directory. Files of this user in it are trusted in addition to our own; `nil` if
    /// this ID stands for several users.
    private let owner: UInt32?
    /// The magic number that identifies the type of the directory's file system (statfs(2)); `nil` until it is needed.
    private let type = Mutex<Int64?>(nil)
    /// `true` once the file system refused to create an unnamed file or to name one, so that later downloads do not try
    /// again.
    private let lacksUnnamed = Atomic<Bool>(false)
    /// `true` if the directory has a default ACL (acl(5)), which decides the access rights of new files.
    let hasDefaultRights: Bool

    /// `O_PATH` of `<fcntl.h>`: opens a directory for the names in it, without the right to read it.
    static let pathOnly: Int32 = 0o10_000_000
    private let shortfalls: Shortfalls?

    /// Opens a directory. Follows links in the path, except links that lead out of one of `roots`: the user names the
    /// directory, and only the files belong to Towline. Throws `unusableDestination` if the path does not lead to a
    /// directory.
    init(
        _ path: String, syscall: any Syscall, shortfalls: Shortfalls? = nil, roots: StorageRoots = StorageRoots()
    ) throws(TowlineError) {
        self.shortfalls = shortfalls
        var code: Int32
        var flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        repeat {
            code = roots.open(path, flags, syscall)
            if code == -EACCES, flags & Self.pathOnly == 0 {
                // A drop box: a directory whose users may create files but not list them.
                flags |= Self.pathOnly
                code = -EINTR
            }
        } while code == -EINTR
        guard code >= 0 else {
            switch -code {
            case ENOENT:
                throw TowlineError(
                    .unusableDestination, "the directory \(path) does not exist. Create the directory first",
                    systemError: -code)
            case ENOTDIR, ELOOP:
                throw TowlineError(
                    .unusableDestination, "\(path) is not a directory. Choose another directory", systemError: -code)
            case EXDEV:
                throw TowlineError(
                    .unusableDestination,
                    "a symbolic link in \(path) leads out of the downloads directory, so it is not followed. "
                        + "Remove the link, or move the download to another directory", systemError: -code)
            default: throw .opening(path, -code)
            }
        }
        self.path = path
        descriptor = Descriptor(code, path: path, syscall: syscall, shortfalls: shortfalls)
        let status = try descriptor.status()
        identity = status.identity
        owner = Self.trustedOwner(of: status, inNamespace: towline_is_in_user_namespace() != 0)
        let length = try descriptor.call {
            Int32(
                syscall.getAttribute(
                    $0, "system.posix_acl_default", UnsafeMutableRawBufferPointer(start: nil, count: 0)))
        }
        hasDefaultRights = length > 0 || length == -ERANGE
    }

    /// The number that Linux shows in a user namespace for every user that has no number there (`overflowuid`,
    /// proc(5)).
    private static let unmapped: UInt32 = 65534

    /// Returns the user ID of a directory's owner; `nil` if this ID stands for several users and other users may write
    /// to the directory. That occurs in a user namespace: rootless containers and systemd units with `PrivateUsers=`.
    static func trustedOwner(of directory: FileStatus, inNamespace: @autoclosure () -> Bool) -> UInt32? {
        directory.owner == unmapped && directory.mode & 0o022 != 0 && inNamespace() ? nil : directory.owner
    }

    /// Returns the identity of the machine's boot, combined with that of this directory's disk: unsynced bytes may also
    /// be lost when the disk is unplugged. Reads two system files, so small files do not call it.
    func boot(_ machine: BootIdentity) -> BootIdentity {
        machine.on(disk: BootIdentity.diskSequence(of: identity.device, descriptor.syscall))
    }

    /// Returns the path of the file with this name in the directory, for messages to the user.
    func path(of name: String) -> String { Folder.path(of: name, in: path) }

    /// Returns the path of the file `name` in the directory with the path `directory`, for messages to the user.
    static func path(of name: String, in directory: String) -> String {
        directory == "/" ? "/" + name : directory + "/" + name
    }

    /// Opens an existing regular file. Does not follow a link and does not wait for the other end of a FIFO.
    ///
    /// Refuses a file of another user: in a directory that all users may write to, like `/tmp`, any user could create a
    /// part file with forged bytes, and a journal that records them as downloaded. Trusts the directory's owner, who
    /// has full control there anyway; that also covers file systems that show one owner for all files.
    /// - Returns: `nil` if no file has that name.
    func open(_ name: String, readOnly: Bool = false) throws(TowlineError) -> Descriptor? {
        let flags = (readOnly ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let code = try call { $1.openat($0, name, flags, 0) }
        if code == -ENOENT { return nil }
        guard code >= 0 else { throw .opening(path(of: name), -code) }
        let file = made(code, name)
        let status = try file.status()
        guard status.kind == .regular else {
            throw TowlineError(
                .unusableDestination, "\(path(of: name)) is not a regular file. Remove it, or choose another name")
        }
        guard status.owner == geteuid() || status.owner == owner else {
            throw TowlineError(
                .unusableDestination,
                "\(path(of: name)) belongs to another user and is not used. Remove the file, or choose another name")
        }
        return file
    }

    /// Creates a file for reading and writing, by default only accessible to its owner.
    ///
    /// - Returns: `nil` if the name is taken.
    func create(_ name: String, mode: UInt32 = FileMode.own) throws(TowlineError) -> Descriptor? {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let code = try call { $1.openat($0, name, flags, mode) }
        if code == -EEXIST { return nil }
        // The name is one component, so the open directory itself is gone.
        if code == -ENOENT {
            throw TowlineError(
                .unusableDestination,
                "the directory \(path) was deleted. Create it again, or choose another directory", systemError: ENOENT)
        }
        guard code >= 0 else { throw .opening(path(of: name), -code) }
        return made(code, name)
    }

    private func made(_ number: Int32, _ name: String) -> Descriptor {
        Descriptor(number, path: name, in: path, syscall: descriptor.syscall, shortfalls: shortfalls)
    }

    /// Creates a part file, which only its owner can access unless the directory's default ACL decides otherwise.
    ///
    /// - Returns: `nil` if the name is taken.
    func createPart(_ name: String) throws(TowlineError) -> Descriptor? {
        try create(name, mode: hasDefaultRights ? FileMode.new : FileMode.own)
    }

    /// The magic numbers (statfs(2)) of the file systems that can create and sync a file before it has a name: ext4,
    /// XFS, tmpfs. Not Btrfs, which ignores a sync while no name leads to the file (fs/btrfs/tree-log.c).
    private static let naming: Set<Int64> = [0xEF53, 0x5846_5342, tmpfs]
    private static let tmpfs: Int64 = 0x0102_1994

    /// Creates a file without a name, which disappears in a crash. `name(_:_:)` names the file later; `name` is only
    /// for error messages.
    ///
    /// - Returns: `nil` if the file system does not support unnamed files.
    func createUnnamed(for name: String) throws(TowlineError) -> Descriptor? {
        guard !lacksUnnamed.load(ordering: .relaxed), Self.naming.contains(try fileSystem()) else { return nil }
        let code = try call { $1.openUnnamed($0, FileMode.new) }
        // The caller then creates a named file, which reports the cause of a permanent failure.
        guard code >= 0 else {
            lacksUnnamed.store(true, ordering: .relaxed)
            return nil
        }
        return made(code, name)
    }

    /// `true` if the directory is on a file system in memory (tmpfs): a sync then has no effect and is unnecessary.
    var isInMemory: Bool { (try? fileSystem()) == Self.tmpfs }

    /// `true` if this machine's kernel makes all changes of the directory, so that their times are reliable. A FUSE
    /// server or a remote machine may store other times, or none.
    var isLocal: Bool {
        guard let type = try? fileSystem(), type != 0 else { return false }
        return !SyncQueue.asksEachFile.contains(type)
    }

    /// `true` if the file system reports a hole of a file only where no byte was written: ext4, XFS, Btrfs and tmpfs.
    /// Others may store written zeros as holes.
    var reportsHoles: Bool {
        guard let type = try? fileSystem() else { return false }
        return type == 0x9123_683E || Self.naming.contains(type)
    }

    private func fileSystem() throws(TowlineError) -> Int64 {
        if let known = type.withLock({ $0 }) { return known }
        var space = FileSystemSpace()
        let found = try call { $1.space($0, &space) } >= 0 ? space.type & 0xFFFF_FFFF : 0
        type.withLock { $0 = found }
        return found
    }

    /// Gives a file from `createUnnamed` its first name.
    ///
    /// - Returns: `false` if the name is taken.
    func name(_ file: Descriptor, _ name: String) throws(TowlineError) -> Bool {
        let number = try file.acquire()
        defer { file.release() }
        let code = try call { $1.name(number, $0, name) }
        if code == -EEXIST { return false }
        guard code >= 0 else {
            // A sandbox may forbid links: later files are then created with a name.
            if code.isLackingOrForbidden { lacksUnnamed.store(true, ordering: .relaxed) }
            throw .renaming(file.path, to: name, -code)
        }
        return true
    }

    /// Returns the status of the file with this name in the directory, such as its length and owner; `nil` if the name
    /// is free. Does not follow a link.
    func status(of name: String) throws(TowlineError) -> FileStatus? {
        var status = FileStatus()
        let code = try call { $1.status($0, name, &status) }
        if code == -ENOENT { return nil }
        guard code >= 0 else { throw .examining(path(of: name), -code) }
        return status
    }

    /// Returns whether `name` still refers to the file that `file` is open on.
    func names(_ file: Descriptor, _ name: String) throws(TowlineError) -> Bool {
        guard let there = try status(of: name) else { return false }
        return there.identity == (try file.identity())
    }

    /// Renames a file within the directory and replaces any file that has the new name.
    func rename(_ from: String, over to: String) throws(TowlineError) {
        let code = try call { $1.rename($0, from, to, keeps: false) }
        guard code >= 0 else { throw .renaming(path(of: from), to: to, -code) }
    }

    /// Renames a file within the directory if the new name is free.
    ///
    /// If the file system cannot do that in one step, adds the new name as a link and then removes the old one: a crash
    /// in between leaves two names of one file, which the next run corrects when it examines the destination
    /// (`FileStorage.survey`).
    /// - Returns: `false` if the name is taken.
    func rename(_ from: String, to: String) throws(TowlineError) -> Bool {
        var code = try call { $1.rename($0, from, to, keeps: true) }
        if code.isLacking || code == -EPERM {
            code = try call { $1.link($0, from, to) }
            if code >= 0 {
                try remove(from)
            } else if code != -EEXIST {
                // The file system has no links either (FAT): check, then rename. Another process may take the name in
                // between.
                if try status(of: to) != nil { return false }
                code = try call { $1.rename($0, from, to, keeps: false) }
            }
        }
        if code == -EEXIST { return false }
        guard code >= 0 else { throw .renaming(path(of: from), to: to, -code) }
        return true
    }

    /// Renames a file to the first free name of `base`, `base (1)`, `base (2)` …
    ///
    /// - Returns: the new name.
    func rename(_ from: String, toFreeNameLike base: String) throws(TowlineError) -> String {
        for number in 0..<10_000 {
            let name = number == 0 ? base : base + " (\(number))"
            if try rename(from, to: name) { return name }
        }
        throw .occupied(path(of: base))
    }

    /// Removes the file with this name from the directory. Does nothing if the file does not exist.
    func remove(_ name: String) throws(TowlineError) {
        let code = try call { $1.unlink($0, name) }
        guard code >= 0 || code == -ENOENT else { throw .removing(path(of: name), -code) }
    }

    /// Returns the names of all entries in the directory.
    func names() throws(TowlineError) -> [String] {
        var names: [String] = []
        let code = try call { $1.names($0, &names) }
        guard code >= 0 else { throw .reading(path, -code) }
        return names
    }

    private func call(_ body: (Int32, any Syscall) -> Int32) throws(TowlineError) -> Int32 {
        let syscall = descriptor.syscall
        return try descriptor.call { body($0, syscall) }
    }
}
