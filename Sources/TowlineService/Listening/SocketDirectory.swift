internal import Foundation
internal import Towline

/// The directory of the Unix socket: one that only its owner can enter, so that nobody opens the socket in the instant
/// between its making and its mode.
enum SocketDirectory {
    /// `sun_path` of unix(7), with its NUL.
    private static let maximumLength = 107

    /// Makes it ready for a socket of that path.
    static func prepare(for socket: URL) throws(TowlineError) {
        let path = socket.path
        let name = TerminalSafeText.make(path)
        guard path.utf8.count <= maximumLength else {
            throw TowlineError(
                .unusableDestination, "\(name) is too long for a socket: it may have \(maximumLength) bytes")
        }
        let directory = socket.deletingLastPathComponent().path
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw TowlineError(.unusableDestination, "\(TerminalSafeText.make(directory)) cannot be made")
        }
        var status = stat()
        guard lstat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw TowlineError(
                .unusableDestination, "\(TerminalSafeText.make(directory)) belongs to somebody else: no socket there")
        }
        if status.st_mode & 0o077 != 0, chmod(directory, 0o700) != 0 {
            throw TowlineError(
                .diskPermission, "\(TerminalSafeText.make(directory)) is open to others and cannot be closed")
        }
        // What an earlier process left. Anything else of that name stays, and binding says so.
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK { unlink(path) }
    }

    /// Its owner alone.
    static func restrict(_ socket: URL) { chmod(socket.path, 0o600) }
}
