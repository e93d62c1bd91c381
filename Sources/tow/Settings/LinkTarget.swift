import Glibc
import TowlineCore

/// The file that a symbolic link leads to, for `-o LINK`: with `--if-exists overwrite` or `update` that file is
/// replaced and the link stays, as with curl and wget; otherwise that file is the one that exists. A name that a list
/// or a server chose is never resolved, because it could lead out of the directory.
enum LinkTarget {
    /// The maximum number of links to follow, as in the kernel (path_resolution(7)).
    private static let mostLinks = 40

    /// Returns the path of the regular file that a link leads to, step by step; `nil` if the path is not a link, or
    /// leads to something else.
    ///
    /// - Throws: `unusableDestination` if a link belongs to another user than this one, root or the owner of its
    ///   directory. In a directory like `/tmp`, any user could lead the download to another file of this user.
    static func resolve(_ path: String) throws(TowlineError) -> String? {
        var path = path
        var status = stat()
        for count in 0..<mostLinks {
            guard ByteText.withCString(path, { lstat($0, &status) }) == 0 else { return nil }
            guard status.st_mode & S_IFMT == S_IFLNK else {
                return count > 0 && status.st_mode & S_IFMT == S_IFREG ? path : nil
            }
            let directory = parent(of: path)
            var owner = stat()
            guard ByteText.withCString(directory, { stat($0, &owner) }) == 0, let target = target(of: path) else {
                return nil
            }
            guard [geteuid(), owner.st_uid, 0].contains(status.st_uid) else {
                throw TowlineError(
                    .unusableDestination,
                    "\(path) is a symbolic link that belongs to another user and is not followed. "
                        + "Remove the link, or choose another name")
            }
            path = target.utf8.first == 0x2F ? target : directory + "/" + target
        }
        return nil
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: 0x2F) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func target(of link: String) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = ByteText.withCString(link) { readlink($0, &bytes, bytes.count) }
        guard count > 0, count < bytes.count else { return nil }
        return ByteText.decode(bytes[..<count].map { UInt8(bitPattern: $0) })
    }
}
