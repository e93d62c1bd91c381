import CTowline
import Glibc

/// The move of a finished file to another path.
package enum FileMove {
    /// The system calls of a move. Each returns 0 or a negative error number.
    struct Calls {
        /// renameat2(2) with RENAME_NOREPLACE.
        var move: (_ from: String, _ to: String) -> Int32 = { towline_move($0, $1) }
        var link: (_ from: String, _ to: String) -> Int32 = { Glibc.link($0, $1) == 0 ? 0 : -errno }
        var synchronize: (_ directory: String) -> Int32 = FileMove.synchronize
    }

    private static let attribute = "user.towline.moved"

    /// Renames a file within a file system. Never replaces an existing file. The new name is durable when the function
    /// returns. A failed sync is ignored: the file has its new name, and undoing the rename would be no more durable.
    ///
    /// The file first gets `receipt` as an extended attribute, if the file system supports attributes. A second call
    /// with the same receipt recognizes the moved file and succeeds.
    ///
    /// - Returns: the error number of the failed call, or 0.
    package static func rename(_ from: String, to: String, receipt: String) -> Int32 {
        write(receipt, on: from)
        let number = rename(from, to: to, Calls())
        switch number {
        case ENOENT where isOn(to, receipt): return 0
        // A kill between `link` and `unlink` leaves both names. The old name is kept: on a file system that ignores
        // case, both names may be the same entry.
        case EEXIST where isOn(to, receipt) && isSame(from, to): return 0
        default: return number
        }
    }

    static func rename(_ from: String, to: String, _ calls: Calls) -> Int32 {
        var code = calls.move(from, to)
        if [-EINVAL, -ENOSYS, -EOPNOTSUPP].contains(code) { code = renameInSteps(from, to, calls) }
        guard code >= 0 else { return -code }
        for path in [to, from] { _ = calls.synchronize(path.lastIndex(of: "/").map { String(path[...$0]) } ?? "./") }
        return 0
    }

    /// Renames with a hard link and an unlink, for file systems that do not support a rename without replacing (NFS,
    /// some FUSE).
    private static func renameInSteps(_ from: String, _ to: String, _ calls: Calls) -> Int32 {
        let code = calls.link(from, to)
        if code >= 0 { return unlink(from) == 0 ? 0 : -errno }
        guard [-EPERM, -ENOSYS, -EOPNOTSUPP].contains(code) else { return code }
        // Without hard links (FAT), checks the name and then renames. Another process may create the name in between.
        var status = stat()
        guard lstat(to, &status) != 0 else { return -EEXIST }
        return Glibc.rename(from, to) == 0 ? 0 : -errno
    }

    /// Syncs a directory, or the complete file system if it cannot sync a directory (some FUSE).
    private static func synchronize(_ directory: String) -> Int32 {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return fsync(descriptor) == 0 ? 0 : -towline_syncfs(descriptor)
    }

    // MARK: The receipt

    private static func write(_ receipt: String, on path: String) {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        let bytes = Array(receipt.utf8)
        _ = towline_fsetxattr(file, attribute, bytes, bytes.count)
    }

    private static func isOn(_ path: String, _ receipt: String) -> Bool {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: receipt.utf8.count + 1)
        let count = towline_fgetxattr(file, attribute, &bytes, bytes.count)
        return count >= 0 && bytes.prefix(Int(count)).elementsEqual(receipt.utf8)
    }

    private static func isSame(_ left: String, _ right: String) -> Bool {
        var (first, second) = (stat(), stat())
        return lstat(left, &first) == 0 && lstat(right, &second) == 0
            && (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
    }
}
