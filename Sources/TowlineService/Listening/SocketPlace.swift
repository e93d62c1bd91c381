internal import Foundation
import Synchronization
internal import Towline
import TowlineWire

/// Creates the Unix socket so that other users can never open it.
///
/// A new directory has mode 0700. The mode of an existing directory is not changed: if other users have access, the
/// socket is created in a private subdirectory, and moved to its path once its mode is 0600.
final class SocketPlace: Sendable {
    /// `sun_path` of unix(7), with its NUL.
    private static let maximumLength = 107

    let binding: String
    let path: String
    private let workshop: String?
    /// The file that tells `tow` the path of the socket, whatever its environment variables are.
    private let record: PrivateFile
    /// Identity of the socket that clients can open, once it exists.
    private let own = Mutex<Mark?>(nil)

    /// Identity of a socket file. The inode number alone is not enough, because it may be reused.
    private struct Mark: Equatable {
        let device: dev_t
        let number: ino_t
        let seconds: Int
        let nanoseconds: Int

        init?(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            (device, number) = (status.st_dev, status.st_ino)
            (seconds, nanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
        }
    }

    /// Prepares the directory for a socket at the given path.
    ///
    /// - Parameter stateDirectory: the directory of the file that contains the path of the socket.
    /// - Throws: `unusableDestination`.
    init(_ socket: URL, recordedIn stateDirectory: String) throws(TowlineError) {
        path = socket.path
        record = PrivateFile(
            path: ServicePlaces.socketRecord(in: stateDirectory), title: "file with the path of the socket",
            advice: "Remove the file and restart towd")
        let directory = socket.deletingLastPathComponent().path
        try Self.make(directory)
        var status = stat()
        guard lstat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw Self.unusable(
                directory,
                "the directory of the socket must belong to the user who runs towd. Choose another path with --socket")
        }
        // A user with write access could replace the socket, or create one first where the sticky bit is set.
        guard status.st_mode & 0o022 == 0 else {
            throw Self.unusable(
                directory,
                """
                other users can write to the directory of the socket, and could replace the socket. Run chmod go-w on \
                the directory, or choose another path with --socket
                """)
        }
        // Remove the socket of an earlier process, but no other file.
        var old = stat()
        if lstat(path, &old) == 0 {
            guard old.st_mode & S_IFMT == S_IFSOCK else {
                throw Self.unusable(
                    path,
                    "towd needs this path for its socket, but the file there is not a socket. Remove the file,"
                        + " or choose another path with --socket")
            }
            unlink(path)
        }
        if status.st_mode & 0o077 == 0 {
            workshop = nil
            binding = path
        } else {
            let workshop = directory + "/." + socket.lastPathComponent
            self.workshop = workshop
            binding = workshop + "/s"
            try Self.makeWorkshop(workshop)
            unlink(binding)
        }
        guard binding.utf8.count <= Self.maximumLength else {
            clear()
            throw Self.unusable(
                path,
                "this path is too long for the socket of towd: the limit is \(maximumLength) bytes."
                    + " Choose a shorter path with --socket")
        }
    }

    /// Sets the mode of the bound socket and moves the socket to its path.
    func open() {
        chmod(binding, 0o600)
        if workshop != nil {
            rename(binding, path)
            clear()
        }
        own.withLock { $0 = Mark(path) }
        // Without the record, tow still finds the socket at its default path.
        try? record.replace(with: path)
    }

    /// True if the socket was created and then removed by someone else.
    var isGone: Bool { own.withLock { $0 != nil } && access(path, F_OK) != 0 && errno == ENOENT }

    /// Removes the socket, unless another process has already replaced it.
    func remove() {
        guard let mark = own.withLock({ $0 }) else { return clear() }
        try? record.remove()
        if Mark(path) == mark { unlink(path) }
    }

    private func clear() {
        guard let workshop else { return }
        unlink(binding)
        rmdir(workshop)
    }

    /// Maximum length of the socket path in bytes.
    private var maximumLength: Int { Self.maximumLength - (binding.utf8.count - path.utf8.count) }

    private static func make(_ directory: String) throws(TowlineError) {
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw unusable(
                directory,
                "cannot create this directory for the socket of towd. Check the path and its permissions,"
                    + " or choose another path with --socket")
        }
    }

    private static func makeWorkshop(_ path: String) throws(TowlineError) {
        var status = stat()
        guard mkdir(path, 0o700) == 0 || errno == EEXIST, lstat(path, &status) == 0,
            status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), chmod(path, 0o700) == 0
        else {
            throw unusable(
                path,
                "cannot create this private directory, which towd needs to create its socket."
                    + " Check the permissions, or choose another path with --socket")
        }
    }

    private static func unusable(_ path: String, _ why: String) -> TowlineError {
        TowlineError(.unusableDestination, "\(TerminalSafeText.make(path)): \(why)")
    }
}
