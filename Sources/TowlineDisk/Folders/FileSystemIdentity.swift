import CTowline
import Glibc

/// The identity of the file system that contains a directory. It survives a restart of the machine, unlike a device
/// number, so that a disk that is not mounted can be detected. `docs/crash-safety.md` explains the sources.
package struct FileSystemIdentity: Hashable, Sendable, Codable {
    /// The magic number of the file system's type (statfs(2)).
    package let type: Int64
    /// The permanent identity of this file system, with its kind as a prefix: `fsid:` (ext4, Btrfs, ZFS, bcachefs),
    /// `uuid:` (other disks) or `source:` (network file systems). `nil` if the system reports none.
    package let id: String?
    /// The path at which the file system was mounted; `nil` if unknown. It decides only together with `inode`.
    package var mountPoint: String?
    /// The number of the directory in its file system.
    package var inode: UInt64?

    /// Creates an identity from its parts.
    package init(type: Int64, id: String?, mountPoint: String? = nil, inode: UInt64? = nil) {
        (self.type, self.id, self.mountPoint, self.inode) = (type, id, mountPoint, inode)
    }

    /// Returns whether both are the same file system, as far as that is known. Without permanent identities of the same
    /// kind, compares only the types: a download must not wait forever because a system reports less than before.
    ///
    /// - Parameter other: the file system that the directory had earlier.
    package func isSame(as other: FileSystemIdentity) -> Bool {
        if lacksMount(of: other) { return false }
        if let id, let otherID = other.id, id.prefix(4) == otherID.prefix(4) { return id == otherID }
        return type == other.type
    }

    /// Returns whether the earlier mount point is no longer one, and the path leads to another directory. This tells a
    /// directory of the same file system that was mounted there (a bind mount) from the one below it. A mount point
    /// alone decides nothing, because a sandbox adds some; nor does a directory alone, because users replace some.
    private func lacksMount(of other: FileSystemIdentity) -> Bool {
        guard let earlier = other.mountPoint, let inode, let earlierInode = other.inode else { return false }
        return isMounted(above: earlier) && inode != earlierInode
    }

    /// Returns whether the mount point of the file system is a parent of `path`; `false` if it is unknown.
    package func isMounted(above path: String) -> Bool {
        mountPoint.map { $0 == "/" ? path != "/" : path.hasPrefix($0 + "/") } ?? false
    }

    /// The file system of a directory, and whether the directory exists.
    package struct Finding: Sendable {
        /// The file system of the directory; of its nearest existing parent if the directory does not exist.
        package let identity: FileSystemIdentity
        /// `true` if the directory exists.
        package let isOfDirectory: Bool
    }

    /// Returns the file system that contains the directory at `path`; `nil` if it cannot be read.
    package static func find(_ path: String) -> Finding? {
        var place = path
        while true {
            let number = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            if number >= 0 {
                defer { close(number) }
                return FileSystemIdentity(of: number, place).map { Finding(identity: $0, isOfDirectory: place == path) }
            }
            guard errno == ENOENT || errno == ENOTDIR, let slash = place.utf8.lastIndex(of: 0x2F), place != "/" else {
                return nil
            }
            place = slash == place.startIndex ? "/" : String(place[..<slash])
        }
    }

    /// The types whose `f_fsid` comes from the UUID on the disk: ext2 to ext4, Btrfs (with the subvolume), ZFS,
    /// bcachefs. Others derive it from the device number.
    private static let fsidTypes: Set<Int64> = [0xEF53, 0x9123_683E, 0x2FC1_2FC1, 0xCA45_1A4E]

    /// Returns the nearest parent of a path, or the path itself, at which a file system is mounted.
    private static func mountPoint(of path: String) -> String {
        var place = path[...]
        while !place.isEmpty {
            if towline_is_mount_point(AT_FDCWD, String(place)) == 1 { return String(place) }
            place = place[..<(place.lastIndex(of: "/") ?? place.startIndex)]
        }
        return "/"
    }

    private init?(of directory: Int32, _ path: String) {
        var space = towline_space()
        var status = FileStatus()
        guard towline_fstatfs(directory, &space) >= 0, SystemCalls().status(directory, "", &status) >= 0 else {
            return nil
        }
        type = space.type & 0xFFFF_FFFF
        (mountPoint, inode) = (Self.mountPoint(of: path), status.identity.inode)
        if Self.fsidTypes.contains(type) {
            id = "fsid:" + String(space.id, radix: 16)
        } else {
            let device = (towline_major(status.identity.device), towline_minor(status.identity.device))
            id = Self.diskUUID(device, directory) ?? Self.networkSource(device)
        }
    }

    /// Returns the UUID or serial number of a disk's file system, from udev or the kernel (`FS_IOC_GETFSUUID`).
    private static func diskUUID(_ device: (major: UInt32, minor: UInt32), _ directory: Int32) -> String? {
        // A file system without a disk has the major number 0. Its UUID, as that of tmpfs, changes at each mount.
        guard device.major != 0 else { return nil }
        let key = "E:ID_FS_UUID="
        for line in lines(of: "/run/udev/data/b\(device.major):\(device.minor)") where line.hasPrefix(key) {
            return "uuid:" + line.dropFirst(key.count).lowercased()
        }
        // struct fsuuid2 of <linux/fs.h>: the length, then 16 bytes.
        var answer = [UInt8](repeating: 0, count: 17)
        guard ioctl(directory, 0x8011_1500, &answer) == 0, answer[0] == 16 else { return nil }
        let hex = answer[1...].map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }
        let groups = [hex[0..<4], hex[4..<6], hex[6..<8], hex[8..<10], hex[10..<16]]
        return "uuid:" + groups.map { $0.joined() }.joined(separator: "-")
    }

    /// Returns the server and the exported directory of a network file system, such as `nas:/films` or `//nas/films`,
    /// from `/proc/self/mountinfo` (proc(5)).
    private static func networkSource(_ device: (major: UInt32, minor: UInt32)) -> String? {
        let number = "\(device.major):\(device.minor)"
        for line in lines(of: "/proc/self/mountinfo") {
            let words = line.split(separator: " ")
            guard words.count > 6, words[2] == number, let end = words.firstIndex(of: "-"), end + 2 < words.count
            else { continue }
            let source = words[end + 2]
            return source.contains(":") || source.hasPrefix("//") ? "source:" + source : nil
        }
        return nil
    }

    private static func lines(of path: String) -> [String] {
        guard let stream = fopen(path, "re") else { return [] }
        defer { fclose(stream) }
        var (line, capacity) = (UnsafeMutablePointer<CChar>?.none, 0)
        defer { free(line) }
        var lines: [String] = []
        while getline(&line, &capacity, stream) > 0, let line {
            lines.append(String(String(cString: line).dropLast()))
        }
        return lines
    }
}
