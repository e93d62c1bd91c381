import Glibc
import TowlineCore

/// Functions that read small files.
enum TextFile {
    /// Returns the text of a file without a byte order mark; `nil` with `errno` set if the file cannot be read, is
    /// longer than `limit` bytes, or is neither UTF-8 nor UTF-16 with a mark.
    static func read(_ path: String, limit: Int) -> String? {
        guard let bytes = bytes(path, limit: limit) else { return nil }
        var decoder = UnicodeDecoder()
        guard let text = String(validating: decoder.take(bytes[...]), as: UTF8.self) else {
            errno = EILSEQ
            return nil
        }
        return text.hasPrefix("\u{FEFF}") ? String(text.unicodeScalars.dropFirst()) : text
    }

    /// Returns whether a path leads to a regular file, which can be read more than once.
    static func isRegular(_ path: String) -> Bool {
        var status = stat()
        return ByteText.withCString(path) { stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Returns the bytes of a file; `nil` with `errno` set if the file cannot be read or is longer than `limit` bytes.
    static func bytes(_ path: String, limit: Int) -> [UInt8]? {
        let descriptor = ByteText.withCString(path) { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= limit else {
                errno = EFBIG
                return nil
            }
        }
        return bytes
    }
}
