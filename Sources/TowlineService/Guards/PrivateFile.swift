internal import Foundation
internal import Towline

/// A small file that only the owner of the service can read: the access token or the sessions.
struct PrivateFile: Sendable {
    let path: String
    /// Name of the file in messages, such as "access token file".
    let title: String
    /// The end of a message about a file that cannot be used, such as "Remove the file".
    let advice: String

    /// True if the file belongs to this user and other users have access to it.
    var isExposed: Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid()
            && status.st_mode & 0o077 != 0
    }

    /// Reads the file and returns its text without white space at both ends, or `nil` if the file does not exist.
    ///
    /// - Parameter limit: the maximum number of bytes that are read.
    /// - Throws: `diskPermission` if the file cannot be read, belongs to another user, or is accessible to other users.
    func text(limit: Int) throws(TowlineError) -> String? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return nil }
            throw failure(errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(errno) }
        guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else {
            throw TowlineError(
                .diskPermission,
                """
                the \(title) \(TerminalSafeText.make(path)) belongs to another user or is accessible to other users. \
                \(advice)
                """)
        }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw failure(errno) }
        return String(decoding: bytes.prefix(count), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Replaces the text of the file, or creates the file with mode 0600. A temporary file is written and renamed: a
    /// power loss leaves the old or the new text, and the new text once this function has returned.
    ///
    /// - Throws: `diskPermission` if the file cannot be written; it then has the old text.
    func replace(with text: String) throws(TowlineError) {
        let temporary = path + ".new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(errno) }
        let bytes = Array((text + "\n").utf8)
        let isWritten =
            write(descriptor, bytes, bytes.count) == bytes.count && fchmod(descriptor, 0o600) == 0
            && fsync(descriptor) == 0
        let number = errno
        close(descriptor)
        guard isWritten, rename(temporary, path) == 0 else { throw failure(isWritten ? errno : number) }
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { return }
        fsync(parent)
        close(parent)
    }

    /// Removes the file if it exists.
    ///
    /// - Throws: `diskPermission` if the file cannot be removed.
    func remove() throws(TowlineError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw failure(errno) }
    }

    private func failure(_ number: Int32) -> TowlineError {
        TowlineError(
            .diskPermission,
            """
            cannot read or write the \(title) \(TerminalSafeText.make(path)): \(String(cString: strerror(number))). \
            Check the permissions of the file and of its directory
            """,
            systemError: number)
    }
}
