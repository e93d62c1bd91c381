import CTowline
internal import TowlineCore

/// The permission bits of part files and of finished files.
///
/// Only the owner can open a part file: a user who can open a file can also lock it (flock(2)), which blocks the
/// download, and can read bytes that are not verified yet. A finished file has the bits that the umask allows, or those
/// of the file that it replaces.
enum FileMode {
    /// The permission bits of a new file, before the kernel applies the umask or the directory's default ACL.
    static let new: UInt32 = 0o666
    /// The permission bits of a part file, which only its owner may read and write.
    static let own: UInt32 = 0o600

    /// Removes the access rights of other users from a part file, if the file system supports that.
    static func close(_ file: Descriptor, in folder: Folder) {
        guard !folder.hasDefaultRights else { return }
        set(own, on: file)
    }

    /// Sets the permission bits of a file that is about to be published.
    ///
    /// The owner can read and write the file until it has its final name: the next run must be able to open it after a
    /// crash, and setting an attribute needs write permission (xattr(7)). `keepReadOnly` removes these rights.
    ///
    /// - Parameter replaced: the status of the file that it replaces; `nil` if it replaces no file. The new file is not
    ///   readable for more users than that file, and keeps its executable bits.
    static func open(_ file: Descriptor, replacing replaced: FileStatus?, in folder: Folder) {
        if let replaced, replaced.kind == .regular {
            set(replaced.mode & 0o777 | own, on: file)
        } else if !folder.hasDefaultRights {
            set(new & ~towline_umask(), on: file)
        }
    }

    /// Makes a published file read-only if the file that it replaced was read-only.
    static func keepReadOnly(_ file: Descriptor, like replaced: FileStatus?) {
        guard let replaced, replaced.kind == .regular, replaced.mode & own != own else { return }
        set(replaced.mode & 0o777, on: file)
    }

    /// Sets the permission bits and ignores errors: file systems without permissions, or with fixed ones, do not change
    /// them. A failure never makes the file accessible to more users.
    private static func set(_ mode: UInt32, on file: Descriptor) {
        let syscall = file.syscall
        _ = try? file.call { syscall.setMode($0, mode) }
    }
}
