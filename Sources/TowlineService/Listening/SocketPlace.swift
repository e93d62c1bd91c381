internal import Foundation
import Synchronization
internal import Towline

/// Where the Unix socket is, and how it comes there without an instant in which others could open it.
///
/// A directory that is made for it is its owner's alone. One that was there stays as it is: where others may enter, the
/// socket is made in a directory of its own inside, closed to others, and moved to its place once its mode is right.
final class SocketPlace: Sendable {
    /// `sun_path` of unix(7), with its NUL.
    private static let maximumLength = 107

    /// Where to bind.
    let binding: String
    private let path: String
    private let workshop: String?
    /// The socket that is open to clients, once it is.
    private let own = Mutex<Mark?>(nil)

    /// Tells one socket from another that took its place; the number alone may be given out again.
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

    /// Makes the place ready for a socket of that path.
    init(_ socket: URL) throws(TowlineError) {
        path = socket.path
        let directory = socket.deletingLastPathComponent().path
        try Self.make(directory)
        var status = stat()
        guard lstat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw Self.unusable(directory, "belongs to somebody else: no socket there")
        }
        // Whoever may write there could put a socket of his own in its place.
        guard status.st_mode & 0o002 == 0 || status.st_mode & S_ISVTX != 0 else {
            throw Self.unusable(directory, "can be written to by everybody: no socket there")
        }
        // What an earlier process left. Anything else of that name stays, and binding says so.
        var old = stat()
        if lstat(path, &old) == 0 {
            guard old.st_mode & S_IFMT == S_IFSOCK else { throw Self.unusable(path, "is there and is no socket") }
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
            throw Self.unusable(path, "is too long for a socket: it may have \(maximumLength) bytes")
        }
    }

    /// Once it is bound: closes it to others, and puts it where clients look for it.
    func open() {
        chmod(binding, 0o600)
        if workshop != nil {
            rename(binding, path)
            clear()
        }
        own.withLock { $0 = Mark(path) }
    }

    /// Takes the socket away, unless another process has put its own there: the list is free a moment before this.
    func remove() {
        guard let mark = own.withLock({ $0 }) else { return clear() }
        if Mark(path) == mark { unlink(path) }
    }

    private func clear() {
        guard let workshop else { return }
        unlink(binding)
        rmdir(workshop)
    }

    /// How long a path may be there.
    private var maximumLength: Int { Self.maximumLength - (binding.utf8.count - path.utf8.count) }

    private static func make(_ directory: String) throws(TowlineError) {
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw unusable(directory, "cannot be made")
        }
    }

    private static func makeWorkshop(_ path: String) throws(TowlineError) {
        var status = stat()
        guard mkdir(path, 0o700) == 0 || errno == EEXIST, lstat(path, &status) == 0,
            status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), chmod(path, 0o700) == 0
        else { throw unusable(path, "is needed to make the socket, and cannot be made") }
    }

    private static func unusable(_ path: String, _ why: String) -> TowlineError {
        TowlineError(.unusableDestination, "\(TerminalSafeText.make(path)) \(why)")
    }
}
