import Glibc
package import TowlineCore

/// One factory per system call: what failed, on which path, and what to do about it.
extension TowlineError {
    /// Opening or creating failed.
    package static func opening(_ path: String, _ number: Int32) -> TowlineError {
        switch number {
        case ENOENT, ENOTDIR:
            TowlineError(
                .unusableDestination, "\(path) cannot be opened: the directory does not exist", systemError: number)
        case ELOOP:
            TowlineError(
                .unusableDestination,
                "\(path) is a symbolic link; it is not followed. Remove it, or choose another name",
                systemError: number)
        case EISDIR:
            TowlineError(
                .unusableDestination, "\(path) is a directory. Remove it, or choose another name", systemError: number)
        case ENAMETOOLONG:
            TowlineError(.unusableDestination, "\(path): the name is too long here", systemError: number)
        default: disk("cannot open", path, number)
        }
    }

    /// Writing failed.
    package static func writing(_ path: String, _ number: Int32) -> TowlineError { disk("cannot write", path, number) }
    /// Reading failed.
    package static func reading(_ path: String, _ number: Int32) -> TowlineError { disk("cannot read", path, number) }
    /// `fsync`, `fdatasync` or `syncfs` failed: what was written since the last success may be gone.
    package static func synchronizing(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot bring to stable storage", path, number)
    }
    /// The sync of the directory failed after the file had got its name.
    package static func naming(_ path: String, because error: TowlineError) -> TowlineError {
        TowlineError(
            error.code,
            "\(path) is whole, but its name may not outlive a power loss: \(error.message). Run again to make sure",
            systemError: error.systemError)
    }
    /// `ftruncate` failed.
    package static func truncating(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot set the length of", path, number)
    }
    /// `fallocate` failed.
    package static func reserving(_ path: String, _ length: Int64, _ number: Int32) -> TowlineError {
        disk("cannot reserve \(ByteCountText.format(length)) for", path, number)
    }
    /// `statx` failed.
    package static func examining(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot examine", path, number)
    }
    /// `rename` or `link` failed.
    package static func renaming(_ path: String, to target: String, _ number: Int32) -> TowlineError {
        disk("cannot rename to \(target):", path, number)
    }
    /// `unlink` failed.
    package static func removing(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot remove", path, number)
    }
    /// `flock` failed for another reason than a lock that is taken.
    package static func locking(_ path: String, _ number: Int32) -> TowlineError { disk("cannot lock", path, number) }
    /// `futimens` failed.
    package static func dating(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot set the modification time of", path, number)
    }

    /// A pipe, a socket or a device is under the final name.
    static func unusable(_ path: String) -> TowlineError {
        TowlineError(
            .unusableDestination, "\(path) is a pipe or a device, whose place no file may take: choose another name")
    }

    /// Something else is under the final name.
    package static func occupied(_ path: String) -> TowlineError {
        TowlineError(
            .destinationExists,
            "\(path) is there already; the download is kept beside it. Remove it, or ask to overwrite or rename",
            systemError: EEXIST)
    }

    /// The descriptor was closed before.
    package static func closed(_ path: String) -> TowlineError {
        TowlineError(.diskFailure, "\(path) is closed already", systemError: EBADF)
    }

    private static func disk(_ what: String, _ path: String, _ number: Int32) -> TowlineError {
        let reason = String(cString: strerror(number))
        switch number {
        case ENOSPC:
            return TowlineError(
                .diskFull, "\(what) \(path): no space is left; free some and go on", systemError: number)
        case EDQUOT:
            return TowlineError(
                .diskFull, "\(what) \(path): over the disk quota; free some space and go on", systemError: number)
        case EROFS:
            return TowlineError(.diskPermission, "\(what) \(path): the file system is read-only", systemError: number)
        case EACCES, EPERM:
            return TowlineError(.diskPermission, "\(what) \(path): \(reason)", systemError: number)
        case EFBIG:
            return TowlineError(
                .diskFailure, "\(what) \(path): larger than the file system or `ulimit -f` allows", systemError: number)
        default: return TowlineError(.diskFailure, "\(what) \(path): \(reason)", systemError: number)
        }
    }
}
