import Glibc
import Synchronization
internal import TowlineCore

/// Tracks the disk space that the downloads of a storage still need. Detects a full disk before the first byte, and
/// reserves space if the file system can do it quickly.
final class Preallocation: Sendable {
    /// A reservation of a running download, held weakly: it disappears with its part file.
    private struct WeakReservation {
        weak var reservation: SpaceReservation?

        func rest(on folder: Folder) -> Int64 {
            guard let reservation, reservation.device == folder.identity.device else { return 0 }
            return reservation.rest
        }
    }

    /// `TMPFS_MAGIC` of `statfs(2)`: on tmpfs, reserving would touch every page and use memory.
    private static let tmpfs: Int64 = 0x0102_1994
    /// The minimum length in bytes of files whose space is reserved. For a shorter file, the system call costs more
    /// than it is worth.
    private static let smallest: Int64 = 1 << 20

    /// The number of bytes to keep free, but at most a twentieth of the disk: for other users of the disk while a
    /// service runs unattended.
    private let keptFree: Int64
    /// The reservations of the downloads in progress, which state the disk space that each still needs and other
    /// downloads must not use.
    private let promises = Mutex<[WeakReservation]>([])

    init(keptFree: Int64) { self.keptFree = keptFree }

    /// Throws `diskFull` if a file of `length` bytes does not fit in addition to the other downloads of this process.
    /// `reusable` is the number of bytes of the file that it replaces, which are about to become free.
    func checkSpace(for length: Int64, reusable: Int64 = 0, in folder: Folder) throws(TowlineError) {
        let promised = promises.withLock { promises in promises.reduce(0) { $0 + $1.rest(on: folder) } }
        try check(length, reusable: reusable, promised: promised, folder, mayUseFloor: length < Self.smallest)
    }

    /// Returns whether running downloads still need space, so that a small file must check the free space before it is
    /// written.
    var hasPromises: Bool { promises.withLock { $0.contains { $0.reservation.map { $0.rest > 0 } ?? false } } }

    private func check(
        _ length: Int64, reusable: Int64 = 0, promised: Int64, _ folder: Folder, mayUseFloor: Bool = false
    ) throws(TowlineError) {
        guard let space = space(of: folder.descriptor), space.available < .max else { return }
        let (available, overflow) = (space.available - promised - (mayUseFloor ? 0 : floor(space)))
            .addingReportingOverflow(reusable)
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

    /// Sets the length of the file to `length` and, if the file system can do it quickly, reserves its space or the
    /// first part of it. Never writes zeros. The space of a file under 1 MiB is only counted as needed, unless all of
    /// its bytes are in memory (`isAtHand`).
    ///
    /// - Returns: the reservation for the part that is not reserved yet; `nil` if all space is reserved or none is
    ///   needed.
    func reserve(
        _ length: Int64, for file: Descriptor, in folder: Folder, isAtHand: Bool
    ) throws(TowlineError) -> SpaceReservation? {
        guard length >= Self.smallest else {
            guard !isAtHand else { return nil }
            let reservation = SpaceReservation(
                resuming: length, device: folder.identity.device, from: self, mayUseFloor: true)
            try promise(reservation, in: folder)
            return reservation
        }
        let first = min(length, SpaceReservation.step)
        var isTaken = false
        if space(of: folder.descriptor)?.type != Self.tmpfs {
            let syscall = file.syscall
            let code = try file.call { syscall.fallocate($0, 0, first) }
            isTaken = code >= 0
            guard isTaken || code.isLackingOrForbidden else { throw .reserving(file.path, first, -code) }
        }
        if isTaken, first == length { return nil }
        let syscall = file.syscall
        let code = try file.call { syscall.ftruncate($0, length) }
        // Without a set length, the file grows as bytes are written.
        guard code >= 0 || code.isLackingOrForbidden else { throw .truncating(file.path, -code) }
        let reservation = SpaceReservation(
            length: length, device: folder.identity.device, takes: isTaken, taken: isTaken ? 1 : 0, from: self)
        try promise(reservation, in: folder)
        return reservation
    }

    /// Counts the space of a reservation as needed by this process. Throws `diskFull` if too little is free: two
    /// downloads may start at the same time and both pass `checkSpace`.
    func promise(_ reservation: SpaceReservation, in folder: Folder) throws(TowlineError) {
        try promises.withLock { (promises) throws(TowlineError) in
            promises.removeAll { $0.reservation == nil }
            let promised = promises.reduce(0) { $0 + $1.rest(on: folder) }
            try check(reservation.rest, promised: promised, folder, mayUseFloor: reservation.mayUseFloor)
            promises.append(WeakReservation(reservation: reservation))
        }
    }

    /// Returns a reservation for the space that a resumed download still needs; `nil` if it needs no more space.
    /// `length` is the complete length in bytes, and `written` the number of bytes downloaded so far.
    func rest(of file: FileStatus, length: Int64, written: Int64, in folder: Folder) -> SpaceReservation? {
        // Space that an earlier run reserved counts, as do written bytes that the file system compresses.
        let rest = length - max(min(file.allocated, length), written)
        guard rest > 0 else { return nil }
        return SpaceReservation(resuming: rest, device: folder.identity.device, from: self)
    }

    /// Returns a reservation that reserves no space, but checks during writes that the reserve for other users of the
    /// disk (`keptFree`) stays free; `nil` if none has to stay free.
    func watch() -> SpaceReservation? { keptFree > 0 ? SpaceReservation(watching: self) : nil }

    /// Throws `diskFull` if writing `length` more bytes to the file would leave less space free than the reserve for
    /// other users of the disk (`keptFree`).
    func checkFloor(_ length: Int64, _ file: Descriptor) throws(TowlineError) {
        guard keptFree > 0, let space = space(of: file), space.available - length < floor(space) else { return }
        throw .reserving(file.path, length, ENOSPC)
    }

    private func floor(_ space: FileSystemSpace) -> Int64 { min(keptFree, space.total / 20) }

    /// Returns the sizes of the file system that contains the file; `nil` if it does not report its free space.
    private func space(of file: Descriptor) -> FileSystemSpace? {
        var space = FileSystemSpace()
        let syscall = file.syscall
        guard let code = try? file.call({ syscall.space($0, &space) }), code >= 0 else { return nil }
        return space
    }
}
