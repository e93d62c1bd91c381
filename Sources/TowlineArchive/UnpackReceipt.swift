import CTowline
import Glibc

/// What tells the result of an unpacking from any other directory: an extended attribute with a text of the caller's.
package enum UnpackReceipt {
    private static let name = "user.towline.unpacked"

    /// Whether `path` is a directory that was unpacked with that receipt. Never where the file system keeps no
    /// attributes.
    package static func isOn(_ path: String, _ receipt: String) -> Bool {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return false }
        defer { close(folder) }
        var bytes = [UInt8](repeating: 0, count: receipt.utf8.count + 1)
        let count = towline_fgetxattr(folder, name, &bytes, bytes.count)
        return count >= 0 && bytes.prefix(Int(count)).elementsEqual(receipt.utf8)
    }

    /// A file system without attributes does without: then nobody takes the directory for a result.
    static func write(_ receipt: String, on folder: Int32) {
        let bytes = Array(receipt.utf8)
        _ = towline_fsetxattr(folder, name, bytes, bytes.count)
    }
}
