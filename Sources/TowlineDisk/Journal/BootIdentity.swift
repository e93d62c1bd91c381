import CTowline
import Glibc

/// The identity of a boot of the machine, the time between a start and a stop. Bytes that were written but not synced
/// are still valid if the identity is the same as when they were written.
package struct BootIdentity: Hashable, Sendable {
    /// The first eight bytes of the UUID that identifies the boot, which the kernel chooses at each start of the
    /// machine.
    let high: UInt64
    /// The last eight bytes of the UUID that identifies the boot.
    let low: UInt64

    /// Creates an identity of a boot of the machine from two numbers, for tests.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Returns the identity in `/proc/sys/kernel/random/boot_id` (`random(4)`). If the file cannot be read, returns a
    /// random identity that never occurs again, so that only synced bytes count as downloaded.
    package static func current(_ syscall: any Syscall) -> BootIdentity {
        let unknown = BootIdentity(high: UInt64.random(in: 1...(.max)), low: UInt64.random(in: 1...(.max)))
        let number = syscall.openat(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0)
        guard number >= 0 else { return unknown }
        let file = Descriptor(number, path: "boot_id", syscall: syscall)
        guard let text = try? file.read(36, at: 0) else { return unknown }
        let digits = String(decoding: text.filter { $0 != 0x2D }, as: UTF8.self)
        guard digits.utf8.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
            let low = UInt64(digits.suffix(16), radix: 16)
        else { return unknown }
        return BootIdentity(high: high, low: low)
    }

    /// Returns the identity combined with the sequence number of a disk. A disk that is unplugged and plugged in again
    /// within one boot may have lost its unsynced bytes, as all disks may when the machine stops.
    func on(disk sequence: UInt64) -> BootIdentity { BootIdentity(high: high, low: low ^ sequence) }

    /// Returns the sequence number that the kernel gives a disk each time it is plugged in (`diskseq`, Linux 5.15 and
    /// newer; a partition has the number of its disk). Returns 0 if the device is not a disk or has no number.
    static func diskSequence(of device: UInt64, _ syscall: any Syscall) -> UInt64 {
        let disk = "/sys/dev/block/\(towline_major(device)):\(towline_minor(device))"
        // The directory of a partition is inside that of its disk.
        for path in [disk + "/diskseq", disk + "/../diskseq"] {
            let number = syscall.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0)
            guard number >= 0 else { continue }
            let file = Descriptor(number, path: path, syscall: syscall)
            guard let text = try? file.read(20, at: 0) else { return 0 }
            return UInt64(String(decoding: text.prefix { (0x30...0x39).contains($0) }, as: UTF8.self)) ?? 0
        }
        return 0
    }
}
