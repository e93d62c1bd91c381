import Glibc
import Synchronization
internal import TowlineCore

/// The space of a storage's downloads: finds a full disk before the first byte, and takes the space where that is
/// quick.
final class Preallocation: Sendable {
    private struct WeakReservation {
        weak var reservation: SpaceReservation?
    }

    /// `TMPFS_MAGIC` of `statfs(2)`: there, reserving means touching every page; its room is memory.
    private static let tmpfs: Int64 = 0x0102_1994
    /// Shorter files are not worth the call.
    private static let smallest: Int64 = 1 << 20

    /// So many bytes stay free, or a twentieth of a small disk: for those who share the disk with a service that nobody
    /// watches.
    private let keptFree: Int64
    /// The reservations of the downloads in progress.
    private let promises = Mutex<[WeakReservation]>([])

    init(keptFree: Int64) { self.keptFree = keptFree }

    /// Refuses a length that cannot fit beside the other downloads of this process. `reusable` bytes are about to
    /// become free.
    func checkSpace(for length: Int64, reusable: Int64 = 0, in folder: Folder) throws(TowlineError) {
        guard let space = space(of: folder.descriptor), space.available < .max else { return }
        let promised = promises.withLock { promises in
            promises.compactMap(\.reservation).filter { $0.device == folder.identity.device }.reduce(0) { $0 + $1.rest }
        }
        let (available, overflow) = (space.available - promised - floor(space)).addingReportingOverflow(reusable)
        guard overflow || length <= available else {
            throw TowlineError(
                .diskFull,
                "not enough free disk space in \(folder.path): the download needs \(ByteCountText.format(length)), "
                    + "but only \(ByteCountText.format(max(0, available))) are free\(Self.note(promised)). Free "
                    + "\(ByteCountText.format(length - available)) more, or choose another directory",
                systemError: ENOSPC)
        }
    }

    private static func note(_ promised: Int64) -> String {
        promised > 0 ? " (other downloads in progress need \(ByteCountText.format(promised)))" : ""
    }

    /// Gives the file its length and, where that is quick, its space, or the first part of it. Never writes zeros.
    ///
    /// - Returns: what takes the rest; `nil` if there is nothing to take.
    func reserve(_ length: Int64, for file: Descriptor, in folder: Folder) throws(TowlineError) -> SpaceReservation? {
        guard length >= Self.smallest else { return nil }
        let first = min(length, SpaceReservation.step)
        var isTaken = false
        if space(of: folder.descriptor)?.type != Self.tmpfs {
            let syscall = file.syscall
            let code = try file.call { syscall.fallocate($0, 0, first) }
            switch -code {
            case EOPNOTSUPP, ENOSYS, EINVAL: break
            case ...0: isTaken = true
            default: throw .reserving(file.path, first, -code)
            }
        }
        if isTaken, first == length { return nil }
        try file.truncate(to: length)
        let reservation = SpaceReservation(
            length: length, device: folder.identity.device, takes: isTaken, taken: isTaken ? 1 : 0, from: self)
        promises.withLock { promises in
            promises.removeAll { $0.reservation == nil }
            promises.append(WeakReservation(reservation: reservation))
        }
        return reservation
    }

    /// Returns a check of the free space for a file without reserved space; `nil` if no space has to stay free.
    func watch() -> SpaceReservation? { keptFree > 0 ? SpaceReservation(watching: self) : nil }

    /// Refuses to take so many more bytes if too few would be left to others.
    func checkFloor(_ length: Int64, _ file: Descriptor) throws(TowlineError) {
        guard keptFree > 0, let space = space(of: file), space.available - length < floor(space) else { return }
        throw .reserving(file.path, length, ENOSPC)
    }

    private func floor(_ space: FileSystemSpace) -> Int64 { min(keptFree, space.total / 20) }

    /// `nil` where the file system does not tell.
    private func space(of file: Descriptor) -> FileSystemSpace? {
        var space = FileSystemSpace()
        let syscall = file.syscall
        guard let code = try? file.call({ syscall.space($0, &space) }), code >= 0 else { return nil }
        return space
    }
}
