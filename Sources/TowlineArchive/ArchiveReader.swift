import CArchive
import Glibc
internal import TowlineCore

/// Reads an archive entry by entry, with libarchive. Used on one thread.
///
/// Only what is asked for is enabled: tar and zip, plain or in one layer of gzip, xz or zstd. A filter that libarchive
/// would run as another program is not used, and layers on layers are refused: each multiplies what a few bytes cost.
final class ArchiveReader {
    /// What an entry is.
    enum Kind: Hashable {
        case file(isExecutable: Bool)
        case directory
        case symbolicLink([UInt8])
        case hardLink([UInt8])
        /// A device, a FIFO, a socket, or nothing known.
        case other
    }

    /// What comes before an entry's bytes.
    struct Head {
        let path: [UInt8]
        let kind: Kind
        /// Declared; nothing is reserved or believed because of it.
        let size: Int64
        let modified: Int?
    }

    let path: String
    /// The archive's own size.
    let length: Int64
    private let archive: OpaquePointer
    private let descriptor: Int32
    private var entry: OpaquePointer?
    private let isEmptyZip: Bool

    /// - Throws: `archiveDamaged` if it is no archive of a known kind.
    init(_ path: String) throws(TowlineError) {
        self.path = path
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unpacking("cannot open", path, errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, let archive = archive_read_new()
        else {
            Glibc.close(descriptor)
            throw .damaged(
                path,
                "the downloaded archive was not unpacked because it is now a directory or a device, not a file. "
                    + "Download the archive again")
        }
        self.descriptor = descriptor
        self.archive = archive
        length = Int64(status.st_size)
        isEmptyZip = Self.isEmptyZip(descriptor, length)
        if isEmptyZip { return }
        guard Self.enable(archive) else {
            throw .damaged(
                path,
                "the downloaded archive was not unpacked because the libarchive on this machine does not support all "
                    + "of gzip, xz, zstd, tar and zip. Install a complete libarchive and try again")
        }
        guard archive_read_open_fd(archive, descriptor, 256 << 10) == ARCHIVE_OK else { throw damage() }
        // The last one is the plain file.
        guard archive_filter_count(archive) <= 2 else {
            throw .refusing(
                path,
                "the downloaded archive was not unpacked because it is compressed more than once, which is not "
                    + "supported. Unpack it with another program")
        }
    }

    deinit {
        archive_read_free(archive)
        Glibc.close(descriptor)
    }

    /// A zip file of nothing is an end record and nothing before it, which libarchive does not look for that early.
    private static func isEmptyZip(_ descriptor: Int32, _ length: Int64) -> Bool {
        let record: [UInt8] = [0x50, 0x4B, 5, 6] + [UInt8](repeating: 0, count: 18)
        guard length == record.count else { return false }
        var bytes = [UInt8](repeating: 0xFF, count: record.count)
        return pread(descriptor, &bytes, bytes.count, 0) == bytes.count && bytes == record
    }

    private static func enable(_ archive: OpaquePointer) -> Bool {
        // ARCHIVE_WARN: only by running another program.
        archive_read_support_filter_gzip(archive) == ARCHIVE_OK
            && archive_read_support_filter_xz(archive) == ARCHIVE_OK
            && archive_read_support_filter_zstd(archive) == ARCHIVE_OK
            && archive_read_support_format_tar(archive) == ARCHIVE_OK
            // By its central directory alone: local headers may tell another story.
            && archive_read_support_format_zip_seekable(archive) == ARCHIVE_OK
    }

    private func damage() -> TowlineError {
        guard let reason = archive_error_string(archive).map({ String(cString: $0) }) else {
            return .damaged(
                path,
                "the downloaded archive was not unpacked because it is damaged or its format is unknown. "
                    + "Download the archive again, or unpack it with another program")
        }
        let line = TerminalSafeText.make(String(reason.prefix { !$0.isNewline }), width: 200)
        return .damaged(
            path,
            "the downloaded archive was not unpacked: \(line). The archive may be damaged: download it again")
    }

    /// The next entry; `nil` at the end.
    func next() throws(TowlineError) -> Head? {
        if isEmptyZip { return nil }
        let code = archive_read_next_header(archive, &entry)
        if code == ARCHIVE_EOF { return nil }
        // A warning may be about a name that could be kept as it is; without a name it is refused below.
        guard code == ARCHIVE_OK || code == ARCHIVE_WARN, let entry else { throw damage() }
        guard archive_entry_is_encrypted(entry) == 0 else {
            throw .refusing(
                path,
                "the downloaded archive was not unpacked because it is encrypted, which is not supported. "
                    + "Unpack it with another program")
        }
        guard let name = Self.bytes(archive_entry_pathname(entry) ?? archive_entry_pathname_utf8(entry)) else {
            throw .refusing(
                path,
                "the downloaded archive was not unpacked because it contains a file whose name cannot be read. "
                    + "Unpack it with another program")
        }
        return Head(
            path: name, kind: kind(entry), size: archive_entry_size(entry),
            modified: archive_entry_mtime_is_set(entry) == 0 ? nil : archive_entry_mtime(entry))
    }

    private func kind(_ entry: OpaquePointer) -> Kind {
        if let target = Self.bytes(archive_entry_hardlink(entry) ?? archive_entry_hardlink_utf8(entry)) {
            return .hardLink(target)
        }
        switch archive_entry_filetype(entry) & S_IFMT {
        case S_IFREG: return .file(isExecutable: archive_entry_perm(entry) & S_IXUSR != 0)
        case S_IFDIR: return .directory
        case S_IFLNK:
            let target = Self.bytes(archive_entry_symlink(entry) ?? archive_entry_symlink_utf8(entry))
            return target.map { .symbolicLink($0) } ?? .other
        default: return .other
        }
    }

    private static func bytes(_ text: UnsafePointer<CChar>?) -> [UInt8]? {
        text.map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    /// Hands over an entry's bytes with their offsets, block by block, all of them: what is left to libarchive to skip
    /// is counted by nobody.
    func read(
        _ body: (UnsafeRawBufferPointer, Int64) throws(TowlineError) -> Void
    ) throws(TowlineError) {
        while true {
            var start: UnsafeRawPointer?
            var count = 0
            var offset: la_int64_t = 0
            let code = archive_read_data_block(archive, &start, &count, &offset)
            if code == ARCHIVE_EOF { return }
            // A warning is about a size or a checksum that does not fit.
            guard code == ARCHIVE_OK else { throw damage() }
            try body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count), offset)
        }
    }
}
