import Glibc
internal import TowlineCore

/// Finds the process that has locked a file (flock(2)), so that the error message can name the process.
enum LockOwner {
    /// Returns the error `destinationBusy` for a file that a process has locked. The message names the process if
    /// `/proc/locks` (`proc(5)`) lists it.
    static func busy(_ file: Descriptor) -> TowlineError {
        let owner: String
        switch process(locking: file) {
        case getpid():
            return TowlineError(
                .destinationBusy,
                "\(file.path) is in use: this process is already downloading the same file. Wait for that download")
        case let process?: owner = "process \(process)"
        case nil: owner = "another process"
        }
        return .inUse(file.path, by: owner)
    }

    /// Returns the ID of the process that has locked the file, according to `/proc/locks`; `nil` if that is unknown.
    static func process(locking file: Descriptor) -> Int32? {
        guard let identity = try? file.status().identity else { return nil }
        let number = file.syscall.openat(AT_FDCWD, "/proc/locks", O_RDONLY | O_CLOEXEC, 0)
        guard number >= 0 else { return nil }
        let locks = Descriptor(number, path: "/proc/locks", syscall: file.syscall)
        guard let text = try? locks.read(1 << 20, at: 0) else { return nil }
        // "1: FLOCK  ADVISORY  WRITE 4711 08:02:131104 0 EOF": process, then major:minor in hex, then inode.
        for line in text.split(separator: 0x0A) {
            let words = line.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
            guard words.count >= 6, words[1] == "FLOCK" else { continue }
            let file = words[5].split(separator: ":")
            if file.count == 3, UInt64(file[2]) == identity.inode, UInt64(file[0], radix: 16) == identity.deviceMajor,
                UInt64(file[1], radix: 16) == identity.deviceMinor
            {
                return Int32(words[4])
            }
        }
        return nil
    }
}

extension FileIdentity {
    /// The major part of the file's device number (`makedev(3)`), to compare with the lines of `/proc/locks`.
    fileprivate var deviceMajor: UInt64 { (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF }
    /// The minor part of the file's device number (`makedev(3)`), to compare with the lines of `/proc/locks`.
    fileprivate var deviceMinor: UInt64 { device & 0xFF | (device >> 12) & ~0xFF }
}
