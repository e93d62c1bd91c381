package import Foundation
package import Towline

/// The access token of clients over TCP: 256 random bits, in a file that only the owner of the service can read.
package struct AccessToken: Sendable {
    /// The token: 64 hexadecimal digits.
    package let text: String
    /// Name of the token file in the state directory.
    package static let fileName = "token"

    /// Reads the token of a state directory, or creates a token if the file does not exist.
    ///
    /// - Throws: `diskPermission` if the file cannot be read or created, or if other users can read it; `diskFailure`
    ///   if the file contains no token.
    package init(in directory: URL) throws(TowlineError) {
        let path = directory.appendingPathComponent(Self.fileName, isDirectory: false).path
        if let text = try Self.read(path) {
            self.text = text
            return
        }
        text = Self.random()
        try Self.write(text, path)
    }

    /// Compares in constant time for equal lengths, so that the time does not reveal the token.
    func isEqual(to candidate: some StringProtocol) -> Bool {
        let (left, right) = (Array(text.utf8), Array(candidate.utf8))
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }

    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    private static func read(_ path: String) throws(TowlineError) -> String? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return nil }
            throw failure(path, errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path, errno) }
        guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else {
            throw TowlineError(
                .diskPermission,
                """
                the access token file \(TerminalSafeText.make(path)) belongs to another user or is accessible to other \
                users. Remove the file and restart towd to create a new token
                """)
        }
        var bytes = [UInt8](repeating: 0, count: 80)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count == 64, text.utf8.allSatisfy({ isHexadecimal($0) }) else {
            throw TowlineError(
                .diskFailure,
                """
                the access token file \(TerminalSafeText.make(path)) contains no valid token. Remove the file and \
                restart towd to create a new token
                """)
        }
        return text
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// Writes a temporary file and renames it, because a token truncated by a power loss would lock out every client.
    private static func write(_ text: String, _ path: String) throws(TowlineError) {
        let temporary = path + ".new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path, errno) }
        let line = Array((text + "\n").utf8)
        let isWritten =
            Glibc.write(descriptor, line, line.count) == line.count && fchmod(descriptor, 0o600) == 0
            && fsync(descriptor) == 0
        let number = errno
        close(descriptor)
        guard isWritten, rename(temporary, path) == 0 else { throw failure(path, isWritten ? errno : number) }
    }

    private static func failure(_ path: String, _ number: Int32) -> TowlineError {
        TowlineError(
            .diskPermission,
            """
            cannot read or write the access token file \(TerminalSafeText.make(path)): \
            \(String(cString: strerror(number))). Check the permissions of the file and of its directory
            """,
            systemError: number)
    }
}
