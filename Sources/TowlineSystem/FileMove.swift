import CTowline
import Glibc

/// The move of a finished file to another path.
package enum FileMove {
    /// The system calls of a move. Each returns 0 or a negative error number.
    struct Calls {
        /// renameat2(2) with RENAME_NOREPLACE.
        var move: (_ from: Entry, _ to: Entry) -> Int32 = {
            towline_rename($0.directory, $0.name, $1.directory, $1.name, 1)
        }
        var link: (_ from: Entry, _ to: Entry) -> Int32 = {
            linkat($0.directory, $0.name, $1.directory, $1.name, 0) == 0 ? 0 : -errno
        }
        var synchronize: (_ directory: Int32) -> Int32 = FileMove.synchronize
    }

    /// A name in an open directory.
    package typealias Entry = (directory: Int32, name: String)

    private static let attribute = "user.towline.moved"

    /// Renames a file within a file system. Never replaces an existing file. The new name is durable when the function
    /// returns. A failed sync is ignored: the file has its new name, and undoing the rename would be no more durable.
    ///
    /// The file first gets `receipt` as an extended attribute, if the file system supports attributes. A second call
    /// with the same receipt recognizes the moved file and succeeds.
    ///
    /// - Returns: the error number of the failed call, or 0.
    package static func rename(_ from: Entry, to: Entry, receipt: String) -> Int32 {
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

    static func rename(_ from: Entry, to: Entry, _ calls: Calls) -> Int32 {
        var code = calls.move(from, to)
        if [-EINVAL, -ENOSYS, -EOPNOTSUPP].contains(code) { code = renameInSteps(from, to, calls) }
        guard code >= 0 else { return -code }
        for entry in [to, from] { _ = calls.synchronize(entry.directory) }
        return 0
    }

    /// Renames with a hard link and an unlink, for file systems that do not support a rename without replacing (NFS,
    /// some FUSE).
    private static func renameInSteps(_ from: Entry, _ to: Entry, _ calls: Calls) -> Int32 {
        let code = calls.link(from, to)
        if code >= 0 { return unlinkat(from.directory, from.name, 0) == 0 ? 0 : -errno }
        guard [-EPERM, -ENOSYS, -EOPNOTSUPP].contains(code) else { return code }
        // Without hard links (FAT), checks the name and then renames. Another process may create the name in between.
        var status = stat()
        guard fstatat(to.directory, to.name, &status, AT_SYMLINK_NOFOLLOW) != 0 else { return -EEXIST }
        return renameat(from.directory, from.name, to.directory, to.name) == 0 ? 0 : -errno
    }

    /// Syncs a directory, or the complete file system if it cannot sync a directory (some FUSE).
    private static func synchronize(_ directory: Int32) -> Int32 {
        fsync(directory) == 0 ? 0 : -towline_syncfs(directory)
    }

    // MARK: The receipt

    private static func write(_ receipt: String, on entry: Entry) {
        let file = openat(entry.directory, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        let bytes = Array(receipt.utf8)
        _ = towline_fsetxattr(file, attribute, bytes, bytes.count)
    }

    private static func isOn(_ entry: Entry, _ receipt: String) -> Bool {
        let file = openat(entry.directory, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: receipt.utf8.count + 1)
        let count = towline_fgetxattr(file, attribute, &bytes, bytes.count)
        return count >= 0 && bytes.prefix(Int(count)).elementsEqual(receipt.utf8)
    }

    private static func isSame(_ left: Entry, _ right: Entry) -> Bool {
        var (first, second) = (stat(), stat())
        return fstatat(left.directory, left.name, &first, AT_SYMLINK_NOFOLLOW) == 0
            && fstatat(right.directory, right.name, &second, AT_SYMLINK_NOFOLLOW) == 0
            && (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
    }
}
