import Glibc
internal import TowlineCore

/// The file operations outside SQLite. None of them opens a database that is in use: closing any descriptor of a file
/// releases all of the process's locks on the file (`fcntl(2)`).
enum FileCall {
    /// Opens a file, or creates it with mode 0600 if `flags` contains `O_CREAT`.
    static func open(_ path: String, _ flags: Int32) throws(TowlineError) -> Int32 {
        var number: Int32
        repeat { number = Glibc.open(path, flags, 0o600) } while number < 0 && errno == EINTR
        guard number >= 0 else { throw error("cannot open", path, errno) }
        return number
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// The device and the number of a file (`st_dev`, `st_ino`). No other file has both while the file is open.
    struct Identity: Hashable {
        let device: UInt64
        let number: UInt64

        fileprivate init(_ status: stat) { (device, number) = (UInt64(status.st_dev), UInt64(status.st_ino)) }
    }

    /// Returns the identity of the file at a path; `nil` if the file is missing.
    static func identity(path: String) -> Identity? {
        var status = stat()
        return lstat(path, &status) == 0 ? Identity(status) : nil
    }

    /// Returns the identity of an open file.
    static func identity(_ file: Int32) -> Identity? {
        var status = stat()
        return fstat(file, &status) == 0 ? Identity(status) : nil
    }

    static func size(_ file: Int32) -> Int {
        var status = stat()
        return fstat(file, &status) == 0 ? Int(status.st_size) : 0
    }

    static func size(path: String) -> Int {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Reads up to `count` bytes. Returns fewer bytes at the end of the file or after an error.
    static func read(_ file: Int32, count: Int, at offset: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            while length < count {
                let got = pread(file, buffer.baseAddress.map { $0 + length }, count - length, off_t(offset + length))
                if got < 0, errno == EINTR { continue }
                if got <= 0 { break }
                length += got
            }
        }
    }

    /// Renames a file. A missing file is not an error.
    static func rename(_ from: String, to: String) throws(TowlineError) {
        guard Glibc.rename(from, to) == 0 || errno == ENOENT else { throw error("cannot rename", from, errno) }
    }

    /// Removes a file. A missing file is not an error.
    static func remove(_ path: String) throws(TowlineError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw error("cannot remove", path, errno) }
    }

    static func synchronize(directory: String) throws(TowlineError) {
        let file = try open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(file) }
        guard fsync(file) == 0 else {
            let number = errno
            throw failure(
                "the latest change of the list of downloads may be lost because the directory \(directory) could not "
                    + "be saved to the disk (\(reason(number))). Check the disk and its free space, then try again",
                number)
        }
    }

    /// Returns an error for a failed file operation; `number` is its `errno`.
    static func error(_ action: String, _ path: String, _ number: Int32) -> TowlineError {
        let cause = "\(action) \(path): \(reason(number))"
        let message =
            switch code(number) {
            case .diskFull: "the list of downloads cannot be used (\(cause)). Free some space and try again"
            case .diskPermission: "the list of downloads cannot be used (\(cause)). Check the permissions and try again"
            case .unusableDestination: "the list of downloads cannot be used (\(cause)). Check the path and try again"
            default: "the list of downloads cannot be used (\(cause)). Check the disk and try again"
            }
        return failure(message, number)
    }

    /// Returns an error with a complete message; `number` is the `errno` that determines its code.
    static func failure(_ message: String, _ number: Int32) -> TowlineError {
        TowlineError(code(number), message, systemError: number)
    }

    /// Returns the system's description of an error number.
    static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }

    private static func code(_ number: Int32) -> TowlineError.Code {
        switch number {
        case ENOSPC, EDQUOT: .diskFull
        case EACCES, EPERM, EROFS: .diskPermission
        case ENOENT, ENOTDIR, ELOOP, EISDIR, ENAMETOOLONG: .unusableDestination
        default: .diskFailure
        }
    }
}
