import Glibc
package import TowlineCore

/// One factory per system call: what failed, on which path, and what to do about it.
extension TowlineError {
    /// Opening or creating failed.
    package static func opening(_ path: String, _ number: Int32) -> TowlineError {
        switch number {
        case ENOENT, ENOTDIR:
            TowlineError(
                .unusableDestination,
                "cannot open \(path): a directory in this path does not exist. Create the directory, or choose another",
                systemError: number)
        case ELOOP:
            TowlineError(
                .unusableDestination,
                "\(path) is a symbolic link, which Towline does not follow here. "
                    + "Remove the link, or choose another name",
                systemError: number)
        case EISDIR:
            TowlineError(
                .unusableDestination,
                "\(path) is a directory, not a file. Remove the directory, or choose another name",
                systemError: number)
        case ENAMETOOLONG:
            TowlineError(
                .unusableDestination,
                "cannot open \(path): the name is too long for this file system. Choose a shorter name",
                systemError: number)
        default: disk("cannot open \(path)", number)
        }
    }

    /// Writing failed.
    package static func writing(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot write \(path)", number)
    }
    /// Reading failed.
    package static func reading(_ path: String, _ number: Int32) -> TowlineError { disk("cannot read \(path)", number) }
    /// `fsync`, `fdatasync` or `syncfs` failed: what was written since the last success may be gone.
    package static func synchronizing(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            code(number),
            "the latest changes of \(path) may be lost because they could not be saved to the disk "
                + "(fsync: \(reason(number))). Check the disk and its free space",
            systemError: number)
    }
    /// The sync of the directory failed after the file had got its name.
    package static func naming(_ path: String, because error: TowlineError) -> TowlineError {
        TowlineError(
            error.code,
            "\(path) is complete, but its directory entry is not yet saved to the disk: \(error.message). "
                + "Start the download again to save the entry; no data is downloaded again",
            systemError: error.systemError)
    }
    /// `ftruncate` failed.
    package static func truncating(_ path: String, _ number: Int32) -> TowlineError {
        disk("the download cannot continue because the file system cannot set the length of \(path)", number)
    }
    /// `fallocate` failed.
    package static func reserving(_ path: String, _ length: Int64, _ number: Int32) -> TowlineError {
        let size = ByteCountText.format(length)
        return disk("the download cannot continue because \(size) of disk space cannot be reserved for \(path)", number)
    }
    /// `statx` failed.
    package static func examining(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            code(number),
            "cannot use \(path) because the file system cannot read its type, size and date (\(reason(number))). "
                + "Check the permissions and the disk",
            systemError: number)
    }
    /// `rename` or `link` failed.
    package static func renaming(_ path: String, to target: String, _ number: Int32) -> TowlineError {
        disk("cannot rename \(path) to \(target)", number)
    }
    /// `unlink` failed.
    package static func removing(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot remove \(path)", number)
    }
    /// `flock` failed for another reason than a lock that is taken.
    package static func locking(_ path: String, _ number: Int32) -> TowlineError { disk("cannot lock \(path)", number) }
    /// `futimens` failed.
    package static func dating(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            code(number),
            "the download cannot finish because the file system cannot set the modification time of \(path) "
                + "(\(reason(number))). Choose a directory on another file system",
            systemError: number)
    }

    /// A pipe, a socket or a device is under the final name.
    static func unusable(_ path: String) -> TowlineError {
        TowlineError(
            .unusableDestination,
            "\(path) is a pipe or a device, which Towline does not replace with a file. Choose another name")
    }

    /// A symbolic link is under the final name.
    static func link(_ path: String) -> TowlineError {
        TowlineError(
            .unusableDestination,
            "\(path) is a symbolic link, which Towline neither replaces nor follows here. "
                + "Remove the link, or give the path of its target (-o)")
    }

    /// Something else is under the final name.
    package static func occupied(_ path: String) -> TowlineError {
        TowlineError(
            .destinationExists,
            "\(path) already exists. Any bytes downloaded so far are kept in \(path).tow. "
                + "Remove \(path), or use --if-exists overwrite or rename",
            systemError: EEXIST)
    }

    /// The descriptor was closed before.
    package static func closed(_ path: String) -> TowlineError {
        TowlineError(
            .diskFailure, "cannot use \(path): Towline has already closed the file. Start the download again",
            systemError: EBADF)
    }

    /// A process has the part file locked, or has just created it.
    static func inUse(_ path: String, by owner: String, systemError: Int32? = nil) -> TowlineError {
        TowlineError(
            .destinationBusy,
            "\(path) is in use: \(owner) is already downloading this file. "
                + "Wait until that download ends, or stop the other process",
            systemError: systemError)
    }

    private static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }

    private static func code(_ number: Int32) -> Code {
        switch number {
        case ENOSPC, EDQUOT: .diskFull
        case EROFS, EACCES, EPERM: .diskPermission
        default: .diskFailure
        }
    }

    private static func disk(_ action: String, _ number: Int32) -> TowlineError {
        let reason = reason(number)
        switch number {
        case ENOSPC:
            return TowlineError(
                .diskFull, "\(action): no space is left on the disk. Free some space, then resume the download",
                systemError: number)
        case EDQUOT:
            return TowlineError(
                .diskFull, "\(action): the disk quota is used up. Free some space, then resume the download",
                systemError: number)
        case EROFS:
            return TowlineError(
                .diskPermission, "\(action): the file system is read-only. Choose a directory that can be written to",
                systemError: number)
        case EACCES, EPERM:
            return TowlineError(
                .diskPermission, "\(action): \(reason). Check the permissions of the file and its directory",
                systemError: number)
        case EFBIG:
            return TowlineError(
                .diskFailure,
                "\(action): the file is larger than the file system or `ulimit -f` allows. "
                    + "Raise the limit, or choose another disk",
                systemError: number)
        case EMFILE, ENFILE:
            return TowlineError(
                .diskFailure,
                "\(action): \(reason). Raise the limit on open files (ulimit -n), or use fewer connections and downloads",
                systemError: number)
        case EPIPE:
            return TowlineError(
                .diskFailure, "\(action): the program that reads this output has ended. Start the download again",
                systemError: number)
        default:
            return TowlineError(
                .diskFailure, "\(action): \(reason). Check the disk, or choose another directory", systemError: number)
        }
    }
}
