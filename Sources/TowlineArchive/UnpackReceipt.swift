import CTowline
import Glibc

/// The mark of a directory that was unpacked: an extended attribute whose text the caller chooses.
package enum UnpackReceipt {
    private static let name = "user.towline.unpacked"

    /// Returns whether `path` is a directory that was unpacked with this receipt. Returns `false` if the file system
    /// does not support extended attributes.
    package static func isOn(_ path: String, _ receipt: String) -> Bool {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return false }
        defer { close(folder) }
        var bytes = [UInt8](repeating: 0, count: receipt.utf8.count + 1)
        let count = towline_fgetxattr(folder, name, &bytes, bytes.count)
        return count >= 0 && bytes.prefix(Int(count)).elementsEqual(receipt.utf8)
    }

    /// Writes the receipt on a directory. Has no effect on a file system without extended attributes; `isOn` then
    /// returns `false`.
    static func write(_ receipt: String, on folder: Int32) {
        let bytes = Array(receipt.utf8)
        _ = towline_fsetxattr(folder, name, bytes, bytes.count)
    }
}
