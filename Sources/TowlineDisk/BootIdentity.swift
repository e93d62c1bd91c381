import CTowline
import Glibc

/// Which run of the machine it is: what was written but not synced survives as long as this stays the same.
package struct BootIdentity: Hashable, Sendable {
    /// The first eight bytes of the kernel's UUID.
    let high: UInt64
    /// The last eight bytes.
    let low: UInt64

    /// An identity with this value, for tests.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// What `/proc/sys/kernel/random/boot_id` says; where it cannot be read, one that is never met again, so that
    /// only durable marks count (`random(4)`).
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

    /// The same for what is on one disk. One that is pulled and plugged in again within one run of the machine may have
    /// lost what was not synced, as all of them may with the machine's end.
    func on(disk sequence: UInt64) -> BootIdentity { BootIdentity(high: high, low: low ^ sequence) }

    /// The kernel's number of this plugging in of a disk (`diskseq`, Linux 5.15 and newer, of the disk that a partition
    /// is on); 0 where there is no disk below, or none that says so.
    static func diskSequence(of device: UInt64, _ syscall: any Syscall) -> UInt64 {
        let disk = "/sys/dev/block/\(towline_major(device)):\(towline_minor(device))"
        // A partition is a directory within its disk's.
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
