import CUnpack
import Glibc
package import TowlineCore
internal import TowlineThreads

/// An unpacker of archives into a new directory. Formats: zip, tar, tar.gz, tar.xz, tar.zst.
///
/// A confined child process reads the archive (`ArchiveReader`). This process creates the files.
///
/// Unpacking is atomic: entries are written to `.NAME.unpacking-N`, which is renamed when all bytes are durable. A
/// crash or an error leaves no incomplete directory under the final name, and no existing file is changed.
///
/// An archive may contain files, directories, symbolic links that stay inside the directory, and hard links to its
/// own files. Any other archive, and any archive over the limits, is refused completely. Owners, access lists,
/// setuid and setgid bits are ignored. The executable bit of the owner is kept; the umask sets the other bits.
package struct Unpacker: Sendable {
    private let limits: UnpackLimits

    /// The versions of libarchive and of the libraries that it uses, as NAME/VERSION.
    package static var libraryVersion: String {
        String(cString: towline_archive_version()).replacing("libarchive ", with: "libarchive/")
    }

    /// True if the kernel enforces the limits of the process that reads archives.
    package static var isConfined: Bool { ArchiveReader.isConfined }

    /// The result of unpacking an archive.
    package struct Result: Hashable, Sendable {
        /// The path of the new directory.
        package let path: String
        /// The number of files, links and directories in the new directory.
        package let entries: Int
        /// The number of bytes in its files.
        package let bytes: Int64
    }

    /// Creates an unpacker.
    package init(limits: UnpackLimits = UnpackLimits()) { self.limits = limits }

    /// An entry of an open directory, which stays open until `unpack` returns.
    package struct Entry: Sendable {
        let parent: Int32
        let name: String
        let path: String

        /// Creates an entry from the descriptor of its parent directory, its name, and its path for messages.
        package init(in parent: Int32, named name: String, path: String) {
            (self.parent, self.name, self.path) = (parent, name, path)
        }

        fileprivate var parentPath: String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "." }
    }

    /// Unpacks the file `archive` into the new directory `target`, on a separate thread.
    ///
    /// Cancelling the task ends the unpacking soon and deletes the temporary files.
    ///
    /// - Parameters:
    ///   - target: the new directory. A path component that is replaced meanwhile has no effect: all system calls are
    ///     relative to the open parent directory.
    ///   - durable: waits until the result survives a power failure.
    ///   - receipt: marks the directory as the result of this call; see `UnpackReceipt.isOn`.
    /// - Throws: `archiveRefused` or `archiveDamaged` because of the archive; `destinationExists` if the name exists;
    ///   `cancelled`; an error of the disk.
    package func unpack(
        _ archive: Entry, into target: Entry, durable: Bool = true, receipt: String? = nil
    ) async throws(TowlineError) -> Result {
        let name = target.name
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(0x2F), !name.utf8.contains(0) else {
            let shown = TerminalSafeText.make(name)
            throw TowlineError(
                .unusableDestination,
                "the archive was not unpacked because \"\(shown)\" is not a valid directory name. Choose another name")
        }
        let limits = limits
        return try await WorkThread.run { (flag) throws(TowlineError) in
            let path = archive.path
            let reader = try ArchiveReader(path, in: archive.parent, named: archive.name, limits: limits, flag)
            let folder = try StagingFolder(in: target.parent, at: target.parentPath, for: name)
            let budget = UnpackBudget(limits: limits, archive: path, archiveLength: reader.length)
            let writer = EntryWriter(root: folder.descriptor, archive: path, budget: budget, flag: flag)
            while let head = try reader.next() { try writer.write(head, from: reader) }
            try writer.finish()
            try folder.publish(as: name, durable: durable, receipt: receipt)
            return Result(path: target.path, entries: writer.entries, bytes: writer.bytes)
        }
    }
}
