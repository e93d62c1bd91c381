import Glibc
internal import TowlineCore

/// The extended attribute `user.towline` of a part file with a journal: 16 bytes, the number 6 and the identity of the
/// journal (`JournalHeader.id`). Publishing replaces it by the mark of a finished file (`FinishedMark`).
enum PartMark {
    private static let version: UInt64 = 6
    private static let size = 16

    /// Stores the identity of a journal in its part file. Ignores the failure of file systems without attributes. If a
    /// power loss removes the attribute, the download starts again once its inode number changes.
    static func put(on file: Descriptor, journal: UInt64) {
        guard let number = try? file.acquire() else { return }
        defer { file.release() }
        var bytes: [UInt8] = []
        bytes.append(number: version)
        bytes.append(number: journal)
        _ = bytes.withUnsafeBytes { file.syscall.setAttribute(number, FinishedMark.name, $0) }
    }

    /// Stores the identity of a journal in its part file if the part file has no attribute: an older version of
    /// Towline created it.
    static func add(to file: Descriptor, journal: UInt64) {
        if of(file, journal: journal) == .absent { put(on: file, journal: journal) }
    }

    /// Compares the attribute of a part file with the identity of a journal. The mark of a finished file counts as no
    /// attribute: a crash may have interrupted publishing.
    static func of(_ file: Descriptor, journal: UInt64) -> PartIdentity.Mark {
        guard let number = try? file.acquire() else { return .unsupported }
        defer { file.release() }
        var bytes = [UInt8](repeating: 0, count: size)
        let count = bytes.withUnsafeMutableBytes { file.syscall.getAttribute(number, FinishedMark.name, $0) }
        if count == -Int(ENOTSUP) || count == -Int(ENOSYS) { return .unsupported }
        guard count == size, bytes.load(UInt64.self, at: 0) == version else { return .absent }
        return bytes.load(UInt64.self, at: 8) == journal ? .own : .other
    }
}
