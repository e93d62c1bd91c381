import Glibc
import TowlineCore
import TowlineEngine

/// Paths of `-o` that are not files: descriptors of this process, FIFOs and devices. Bytes are written there in order,
/// as with curl and wget.
enum OutputPath {
    /// Returns whether a path is standard output under another name.
    static func isStandard(_ path: String) -> Bool { descriptor(path) == STDOUT_FILENO }

    /// Returns the stream of bytes that a path leads to; `nil` for a file, and if nothing exists at the path.
    ///
    /// - Throws: `unusableOption` for a descriptor that is not open, or is open only for reading.
    static func stream(_ path: String) throws(TowlineError) -> StreamOutput? {
        if let number = descriptor(path) {
            let flags = fcntl(number, F_GETFL)
            guard flags >= 0, flags & O_ACCMODE != O_RDONLY else {
                throw TowlineError(
                    .unusableOption,
                    "-o \(path): descriptor \(number) is not open for writing. Open it (\(number)>FILE in a shell), "
                        + "or choose a file name")
            }
            return .descriptor(number)
        }
        var status = stat()
        guard ByteText.withCString(path, { stat($0, &status) }) == 0 else { return nil }
        return [S_IFIFO, S_IFCHR, S_IFBLK].contains(status.st_mode & S_IFMT) ? .path(path) : nil
    }

    /// Returns the number of the descriptor that a path stands for (proc(5)), or `nil`. The descriptor itself is used:
    /// opening the path fails for a socket, and for a file it starts again at the first byte.
    private static func descriptor(_ path: String) -> Int32? {
        switch path {
        case "/dev/stdin": return STDIN_FILENO
        case "/dev/stdout": return STDOUT_FILENO
        case "/dev/stderr": return STDERR_FILENO
        default:
            let prefixes = ["/dev/fd/", "/proc/self/fd/"]
            guard let prefix = prefixes.first(where: { path.hasPrefix($0) }) else { return nil }
            let digits = path.dropFirst(prefix.count)
            return digits.utf8.allSatisfy { ASCII.isDigit($0) } ? Int32(digits) : nil
        }
    }
}
