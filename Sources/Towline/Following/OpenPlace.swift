import Glibc
import TowlineCore
import TowlineDisk
import TowlineEngine

/// A path whose parent directory is open. A follow-up opens each directory once and uses only its descriptor, so that a
/// path component that becomes a symbolic link meanwhile has no effect.
final class OpenPlace: Sendable {
    let path: String
    let name: String
    /// The descriptor of the parent directory, which closes with this object.
    let parent: Int32

    /// Opens the parent directory of a path. Throws `unusableDestination` if a symbolic link leads out of the roots of
    /// the storage.
    init(_ path: String, _ storage: FileStorage) throws(TowlineError) {
        let place = Place(path: path)
        (self.path, name) = (path, place.name)
        let number = try storage.withDirectory(place.directory) { directory in
            let opened = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            // The storage can use a directory that this user must not list.
            return opened >= 0 ? opened : fcntl(directory, F_DUPFD_CLOEXEC, 0)
        }
        guard number >= 0 else {
            let reason = errno
            throw TowlineError(
                .unusableDestination,
                "cannot open the directory \(TerminalSafeText.make(place.directory)): \(String(cString: strerror(reason)))",
                systemError: reason)
        }
        parent = number
    }

    deinit { close(parent) }
}
