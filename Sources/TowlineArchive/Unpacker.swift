import CUnpack
import Glibc
package import TowlineCore
internal import TowlineThreads

/// Unpacks an archive into a directory of its own: zip, tar, tar.gz, tar.xz, tar.zst.
///
/// A confined child process reads the archive (`ArchiveReader`); this process makes the files.
///
/// All of it or nothing: entries go into `NAME.unpacking-N` beside the final place, which gets its name when every
/// byte is there and durable. So neither a crash nor an error leaves a half result under the name, and nothing that
/// was there is ever written to.
///
/// What an archive may bring: files, directories, symbolic links that cannot lead out of the directory, hard links to
/// its own files. An archive with anything else, or beyond the limits, is refused as a whole. Owners, access lists,
/// setuid and setgid bits are dropped; of the mode only the owner's execute bit counts, the umask decides the rest.
package struct Unpacker: Sendable {
    private let limits: UnpackLimits

    /// The version of libarchive, as NAME/VERSION, and those of the libraries that it uses.
    package static var libraryVersion: String {
        String(cString: towline_archive_version()).replacing("libarchive ", with: "libarchive/")
    }

    /// What came out.
    package struct Result: Hashable, Sendable {
        /// The directory.
        package let path: String
        /// Files, links and directories in it.
        package let entries: Int
        /// Bytes in its files.
        package let bytes: Int64
    }

    /// Makes an unpacker.
    package init(limits: UnpackLimits = UnpackLimits()) { self.limits = limits }

    /// The directory for an archive's content: its name without the ending that makes it an archive.
    package static func directoryName(for name: String) -> String {
        guard let ending = ending(name) else { return name + ".unpacked" }
        return String(name.dropLast(ending.utf8.count))
    }

    private static func ending(_ name: String) -> String? {
        let lower = ASCII.lowercased(name)
        let endings = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tzst"]
        return endings.first { lower.hasSuffix($0) && lower.utf8.count > $0.utf8.count }
    }

    /// Unpacks the file at `archive` into the new directory `name` in `directory`, on a thread of its own.
    ///
    /// Cancelling the task ends it soon, with nothing left behind.
    ///
    /// - Parameters:
    ///   - durable: return only when a power loss cannot take anything back.
    ///   - receipt: tells the directory from others afterwards; see `UnpackReceipt.isOn`.
    /// - Throws: `archiveRefused` and `archiveDamaged` for the archive's own faults, `destinationExists` if something
    ///   has the name, `cancelled`, or what the disk says.
    package func unpack(
        _ archive: String, into directory: String, as name: String, durable: Bool = true, receipt: String? = nil
    ) async throws(TowlineError) -> Result {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(0x2F), !name.utf8.contains(0) else {
            let shown = TerminalSafeText.make(name)
            throw TowlineError(
                .unusableDestination,
                "the archive was not unpacked because \"\(shown)\" is not a valid directory name. Choose another name")
        }
        let limits = limits
        return try await WorkThread.run { (flag) throws(TowlineError) in
            let reader = try ArchiveReader(archive, flag)
            let folder = try StagingFolder(in: directory, for: name)
            let budget = UnpackBudget(limits: limits, archive: archive, archiveLength: reader.length)
            let writer = EntryWriter(root: folder.descriptor, archive: archive, budget: budget, flag: flag)
            while let head = try reader.next() { try writer.write(head, from: reader) }
            try writer.finish()
            try folder.publish(as: name, durable: durable, receipt: receipt)
            return Result(path: directory + "/" + name, entries: writer.entries, bytes: writer.bytes)
        }
    }
}
