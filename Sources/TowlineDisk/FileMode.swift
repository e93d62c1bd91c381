import CTowline
internal import TowlineCore

/// The permission bits of part files and of finished files.
///
/// Only the owner can open a part file: a user who can open a file can also lock it (flock(2)), which stops the
/// download, and can read bytes that are not yet verified. A finished file has the bits of the umask, or those of the
/// file that it replaces.
enum FileMode {
    /// The bits of a new file, before the kernel applies the umask or the directory's default ACL.
    static let new: UInt32 = 0o666
    /// The bits of a file for its owner only.
    static let own: UInt32 = 0o600

    /// Takes the rights of others away from a part file, as far as the file system can.
    static func close(_ file: Descriptor, in folder: Folder) {
        guard !folder.hasDefaultRights else { return }
        set(own, on: file)
    }

    /// Gives a file that is about to be published its bits.
    ///
    /// Its owner can read and write it until it has its name: the next run must be able to open it after a crash, and
    /// without the right to write no attribute can be set (xattr(7)). `keepReadOnly` takes these rights away.
    ///
    /// - Parameter replaced: the file whose place it takes: it never becomes readable for more users, and a program
    ///   stays one.
    static func open(_ file: Descriptor, replacing replaced: FileStatus?, in folder: Folder) {
        if let replaced, replaced.kind == .regular {
            set(replaced.mode & 0o777 | own, on: file)
        } else if !folder.hasDefaultRights {
            set(new & ~towline_umask(), on: file)
        }
    }

    /// Makes a file that has its name read-only if the file that it replaced was.
    static func keepReadOnly(_ file: Descriptor, like replaced: FileStatus?) {
        guard let replaced, replaced.kind == .regular, replaced.mode & own != own else { return }
        set(replaced.mode & 0o777, on: file)
    }

    /// File systems without permissions, or with fixed ones, keep theirs. The file is never open to more users by a
    /// failure.
    private static func set(_ mode: UInt32, on file: Descriptor) {
        let syscall = file.syscall
        _ = try? file.call { syscall.setMode($0, mode) }
    }
}
