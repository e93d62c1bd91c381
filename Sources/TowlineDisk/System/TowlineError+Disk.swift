import Glibc
package import TowlineCore

/// Functions that create the error of a failed system call on a file: its message names the failure, the path and a
/// possible remedy. `number` is the `errno` of the call, which decides the error's code.
extension TowlineError {
    /// Returns the error to throw if a file cannot be opened or created.
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

    /// Returns the error to throw after a failed write to the file at `path`.
    package static func writing(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot write \(path)", number)
    }
    /// Returns the error to throw after a failed read of the file at `path`.
    package static func reading(_ path: String, _ number: Int32) -> TowlineError { disk("cannot read \(path)", number) }
    /// Returns the error to throw after a failed `fsync`, `fdatasync` or `syncfs`: bytes written since the last success
    /// may be lost.
    package static func synchronizing(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            code(number),
            "the latest changes of \(path) may be lost because they could not be saved to the disk "
                + "(fsync: \(reason(number))). Check the disk and its free space",
            systemError: number)
    }
    /// Returns the error to throw if a complete file has its final name but its directory could not be synced, because
    /// of `error`: the name may not survive a power loss.
    package static func naming(_ path: String, because error: TowlineError) -> TowlineError {
        TowlineError(
            error.code,
            "\(path) is complete, but its directory entry is not yet saved to the disk: \(error.message). "
                + "Start the download again to save the entry; no data is downloaded again",
            systemError: error.systemError)
    }
    /// Returns the error to throw if the length of a file cannot be set (`ftruncate`).
    package static func truncating(_ path: String, _ number: Int32) -> TowlineError {
        disk("the download cannot continue because the file system cannot set the length of \(path)", number)
    }
    /// Returns the error to throw if `length` bytes of disk space cannot be reserved (`fallocate`) or must stay free.
    package static func reserving(_ path: String, _ length: Int64, _ number: Int32) -> TowlineError {
        let size = ByteCountText.format(length)
        return disk("the download cannot continue because \(size) of disk space cannot be reserved for \(path)", number)
    }
    /// Returns the error to throw after a failed `statx`, which reads the type, size and date of a file.
    package static func examining(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            code(number),
            "cannot use \(path) because the file system cannot read its type, size and date (\(reason(number))). "
                + "Check the permissions and the disk",
            systemError: number)
    }
    /// Returns the error to throw if a file cannot be renamed or linked.
    package static func renaming(_ path: String, to target: String, _ number: Int32) -> TowlineError {
        disk("cannot rename \(path) to \(target)", number)
    }
    /// Returns the error to throw if a file cannot be removed (`unlink`).
    package static func removing(_ path: String, _ number: Int32) -> TowlineError {
        disk("cannot remove \(path)", number)
    }
    /// Returns the error to throw if locking a file failed (`flock`) for another reason than a lock that is taken.
    package static func locking(_ path: String, _ number: Int32) -> TowlineError { disk("cannot lock \(path)", number) }
    /// Returns the error to throw if the modification time of a file cannot be set to the server's (`futimens`).
    package static func dating(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            code(number),
            "the download cannot finish because the file system cannot set the modification time of \(path) "
                + "(\(reason(number))). Choose a directory on another file system",
            systemError: number)
    }

    /// Returns the error to throw if the final name of a download belongs to a pipe, a socket or a device.
    static func unusable(_ path: String) -> TowlineError {
        TowlineError(
            .unusableDestination,
            "\(path) is a pipe or a device, which Towline does not replace with a file. Choose another name")
    }

    /// Returns the error to throw if the final name of a download belongs to a symbolic link.
    static func link(_ path: String) -> TowlineError {
        TowlineError(
            .unusableDestination,
            "\(path) is a symbolic link, which Towline neither replaces nor follows here. "
                + "Remove the link, or give the path of its target (-o)")
    }

    /// Returns the error to throw if another file already has the final name of a download.
    package static func occupied(_ path: String) -> TowlineError {
        TowlineError(
            .destinationExists,
            "\(path) already exists. Any bytes downloaded so far are kept in \(path).tow. "
                + "Remove \(path), or \(Remedy.existing)",
            systemError: EEXIST)
    }

    /// Returns the error to throw if a file is used after Towline has closed it.
    package static func closed(_ path: String) -> TowlineError {
        TowlineError(
            .diskFailure, "cannot use \(path): Towline has already closed the file. Start the download again",
            systemError: EBADF)
    }

    /// Returns the error to throw if another download uses a file, because a process has locked it or just created it.
    /// `owner` describes that process.
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
