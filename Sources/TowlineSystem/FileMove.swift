import CTowline
import Glibc

/// Moves a finished file.
package enum FileMove {
    /// The calls that it makes: 0, or an error number with its sign turned.
    struct Calls {
        /// renameat2(2) with RENAME_NOREPLACE.
        var move: (_ from: String, _ to: String) -> Int32 = { towline_move($0, $1) }
        var link: (_ from: String, _ to: String) -> Int32 = { Glibc.link($0, $1) == 0 ? 0 : -errno }
        var synchronize: (_ directory: String) -> Int32 = FileMove.synchronize
    }

    private static let attribute = "user.towline.moved"

    /// One rename within a file system, never over something else. The new name is durable when it returns, unless the
    /// file system cannot say so: the file is where it is to be all the same, and taking it back is no more durable.
    ///
    /// The file gets `receipt` as an extended attribute first, where the file system keeps any: done once more with the
    /// same receipt, the file that is there already is known.
    ///
    /// - Returns: the error number of the call that failed, 0 if none did.
    package static func rename(_ from: String, to: String, receipt: String) -> Int32 {
        write(receipt, on: from)
        let number = rename(from, to: to, Calls())
        switch number {
        case ENOENT where isOn(to, receipt): return 0
        // Where a link had to be made, a kill leaves both names. The first one stays: on a file system that takes
        // upper and lower case for the same, it may be the only one.
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

    /// Where the file system cannot rename without replacing (NFS, some of FUSE): a second name, then the first is
    /// removed.
    private static func renameInSteps(_ from: String, _ to: String, _ calls: Calls) -> Int32 {
        let code = calls.link(from, to)
        if code >= 0 { return unlink(from) == 0 ? 0 : -errno }
        guard [-EPERM, -ENOSYS, -EOPNOTSUPP].contains(code) else { return code }
        // No links here either (FAT): look, then rename. Another process may come between the two.
        var status = stat()
        guard lstat(to, &status) != 0 else { return -EEXIST }
        return Glibc.rename(from, to) == 0 ? 0 : -errno
    }

    /// A file system that syncs no directory alone (some of FUSE) is synced as a whole.
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
