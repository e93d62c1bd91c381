import CTowline
import Glibc

/// The mark of a directory that was unpacked: an extended attribute whose text the caller chooses.
package enum UnpackReceipt {
    private static let name = "user.towline.unpacked"

    /// Returns whether `path` is a directory that was unpacked with this receipt. Returns `false` if the file system
    /// does not support extended attributes.
    package static func isOn(_ path: String, _ receipt: String) -> Bool { isOn(path, in: AT_FDCWD, receipt) }

    /// Returns whether `name` in the open directory `parent` is a directory that was unpacked with this receipt.
    package static func isOn(_ name: String, in parent: Int32, _ receipt: String) -> Bool {
        let folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return false }
        defer { close(folder) }
        var bytes = [UInt8](repeating: 0, count: receipt.utf8.count + 1)
        let count = towline_fgetxattr(folder, Self.name, &bytes, bytes.count)
        return count >= 0 && bytes.prefix(Int(count)).elementsEqual(receipt.utf8)
    }

    /// Deletes the directory `name` in the open directory `parent` and its contents, without following links.
    ///
    /// - Returns: `false` if an entry could not be deleted, so that the directory still exists.
    package static func removeDirectory(_ name: String, in parent: Int32) -> Bool {
        Folder.remove(parent, name)
        var status = stat()
        return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0
    }

    /// Writes the receipt on a directory. Has no effect on a file system without extended attributes; `isOn` then
    /// returns `false`.
    static func write(_ receipt: String, on folder: Int32) {
        let bytes = Array(receipt.utf8)
        _ = towline_fsetxattr(folder, name, bytes, bytes.count)
    }
}
