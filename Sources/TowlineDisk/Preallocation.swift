import Glibc
internal import TowlineCore

/// Finds a full disk before the first byte, and takes the space where that is quick.
enum Preallocation {
    /// `TMPFS_MAGIC` of `statfs(2)`: there, reserving means touching every page; its room is memory.
    private static let tmpfs: Int64 = 0x0102_1994
    /// Shorter files are not worth the call.
    private static let smallest: Int64 = 1 << 20

    /// Refuses a length that cannot fit. `reusable` bytes are about to become free.
    static func checkSpace(for length: Int64, reusable: Int64 = 0, in folder: Folder) throws(TowlineError) {
        guard let space = space(in: folder) else { return }
        let (available, overflow) = space.available.addingReportingOverflow(reusable)
        guard overflow || length <= available else {
            throw TowlineError(
                .diskFull,
                "not enough free disk space in \(folder.path): the download needs \(ByteCountText.format(length)), "
                    + "but only \(ByteCountText.format(available)) are free. Free "
                    + "\(ByteCountText.format(length - available)) more, or choose another directory",
                systemError: ENOSPC)
        }
    }

    /// Gives the file its length and, where that is quick, its space. Never writes zeros.
    static func reserve(_ length: Int64, for file: Descriptor, in folder: Folder) throws(TowlineError) {
        guard length >= smallest else { return }
        if space(in: folder)?.type != tmpfs {
            let syscall = file.syscall
            let code = try file.call { syscall.fallocate($0, 0, length) }
            switch -code {
            case EOPNOTSUPP, ENOSYS, EINVAL: break
            case ...0: return
            default: throw .reserving(file.path, length, -code)
            }
        }
        try file.truncate(to: length)
    }

    /// `nil` where the file system does not tell.
    private static func space(in folder: Folder) -> FileSystemSpace? {
        var space = FileSystemSpace()
        let syscall = folder.descriptor.syscall
        guard let code = try? folder.descriptor.call({ syscall.space($0, &space) }), code >= 0 else { return nil }
        return space
    }
}
