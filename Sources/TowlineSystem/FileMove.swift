import CTowline
import Glibc

/// Moves a finished file.
package enum FileMove {
    /// One rename within a file system, never over something else; durable when it returns.
    ///
    /// - Returns: the error number of the call that failed, 0 if none did.
    package static func rename(_ from: String, to: String) -> Int32 {
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
}
