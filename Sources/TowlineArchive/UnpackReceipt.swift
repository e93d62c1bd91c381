import CTowline
import Glibc

/// The mark of a directory that was unpacked: an extended attribute with a text that the caller chooses, and the time
/// when all files of the archive were there.
package enum UnpackReceipt {
    private static let name = "user.towline.unpacked"

    /// Returns whether `name` in the open directory `parent` is a directory that was unpacked with this receipt.
    /// Returns `false` if the file system does not support extended attributes.
    package static func isOn(_ name: String, in parent: Int32, _ receipt: String) -> Bool {
        lines(name, parent)?.first.map { $0 == receipt } ?? false
    }

    /// Deletes the directory `name` in the open directory `parent` and its contents, without following links, if it was
    /// unpacked with this receipt. Files that the user added or changed stay, with their directories.
    ///
    /// - Returns: `false` if the directory could not be opened, or an entry could not be deleted.
    package static func removeDirectory(_ name: String, in parent: Int32, _ receipt: String) -> Bool {
        guard let lines = lines(name, parent) else { return false }
        guard let first = lines.first, first == receipt else { return true }
        let numbers = lines.dropFirst().first?.split(separator: " ").compactMap { Int($0) } ?? []
        let time = numbers.count == 2 ? Folder.Time(seconds: numbers[0], nanoseconds: numbers[1]) : nil
        return Folder.remove(parent, name, changedUntil: time)
    }

    /// Writes the receipt on a directory. Has no effect on a file system without extended attributes; `isOn` then
    /// returns `false`.
    static func write(_ receipt: String, on folder: Int32) {
        // The clock of the file system, which is not exactly that of the process.
        var status = stat()
        write(Array(receipt.utf8), folder)
        guard fstat(folder, &status) == 0 else { return }
        write(Array("\(receipt)\n\(status.st_ctim.tv_sec) \(status.st_ctim.tv_nsec)".utf8), folder)
    }

    private static func write(_ bytes: [UInt8], _ folder: Int32) {
        _ = towline_fsetxattr(folder, name, bytes, bytes.count)
    }

    /// Returns the lines of the receipt; empty without a receipt or a directory, `nil` if the directory cannot be
    /// opened.
    private static func lines(_ name: String, _ parent: Int32) -> [Substring]? {
        let folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return [ENOENT, ENOTDIR, ELOOP].contains(errno) ? [] : nil }
        defer { close(folder) }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = towline_fgetxattr(folder, Self.name, &bytes, bytes.count)
        return count < 0 ? [] : String(decoding: bytes.prefix(Int(count)), as: UTF8.self).split(separator: "\n")
    }
}
