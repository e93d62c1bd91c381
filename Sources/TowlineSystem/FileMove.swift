import CTowline
import Glibc

/// Moves a finished file.
package enum FileMove {
    private static let attribute = "user.towline.moved"

    /// One rename within a file system, never over something else; durable when it returns.
    ///
    /// The file gets `receipt` as an extended attribute first, where the file system keeps any: done once more with the
    /// same receipt, the file that is there already is known.
    ///
    /// - Returns: the error number of the call that failed, 0 if none did.
    package static func rename(_ from: String, to: String, receipt: String) -> Int32 {
        write(receipt, on: from)
        let number = rename(from, to: to)
        return number == ENOENT && isOn(to, receipt) ? 0 : number
    }

    private static func rename(_ from: String, to: String) -> Int32 {
        let code = towline_move(from, to)
        guard code >= 0 else { return -code }
        for path in [to, from] {
            let code = synchronizeDirectory(of: path)
            guard code == 0 else { return code }
        }
        return 0
    }

    private static func synchronizeDirectory(of path: String) -> Int32 {
        let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "./"
        let descriptor = open(String(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return fsync(descriptor) == 0 ? 0 : errno
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
}
