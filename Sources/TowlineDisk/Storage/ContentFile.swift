package import TowlineCore
internal import TowlineThreads

/// A file of a download, opened read-only: a finished file, or the part file of an unfinished download.
///
/// The object keeps the same file open, even if the file is renamed or removed.
package final class ContentFile: Sendable {
    /// The complete length of the download's file in bytes; `nil` if unknown.
    package let completeLength: Int64?
    /// The byte ranges that can be read: the whole of a finished file, or the downloaded bytes of an unfinished one.
    package let available: ByteRangeSet
    /// A text that differs if the bytes differ, used for the entity tag of a response. For a finished file, as far as
    /// the file system can detect changes; for an unfinished one, the strong validator of the server, or `nil` without
    /// one.
    package let version: String?
    private let file: Descriptor

    private init(_ file: Descriptor, completeLength: Int64?, available: ByteRangeSet, version: String?) {
        self.file = file
        self.completeLength = completeLength
        self.available = available
        self.version = version
    }

    /// Opens a finished file in a directory.
    ///
    /// - Parameter length: the required size in bytes; `nil` accepts any size.
    /// - Throws: `unusableDestination` if the file does not exist, is a link or not a regular file, or has another
    ///   size.
    static func finished(in folder: Folder, named name: String, length: Int64?) throws(TowlineError) -> ContentFile {
        let path = folder.path(of: name)
        guard let file = try folder.open(name, readOnly: true) else {
            throw TowlineError(
                .unusableDestination,
                "\(TerminalSafeText.make(path)) no longer exists: the file was moved or deleted after the download. "
                    + "Move the file back, or download it again")
        }
        let status = try file.status()
        guard status.size == length ?? status.size else {
            throw TowlineError(
                .unusableDestination,
                "\(TerminalSafeText.make(path)) was changed after the download: its size is now \(status.size) bytes. "
                    + "Download the file again")
        }
        return ContentFile(
            file, completeLength: status.size, available: ByteRangeSet([ByteRange(0, status.size)]),
            version: [
                UInt64(bitPattern: status.identity.birthSeconds), UInt64(status.identity.birthNanoseconds),
                status.identity.inode, UInt64(bitPattern: status.modifiedSeconds),
            ].map { String($0, radix: 16) }.joined(separator: "-"))
    }

    /// Opens the part file of an unfinished download. Only the bytes that its journal records as written can be read.
    ///
    /// - Throws: the errors of `JournalReader.inspect`; `unusableDestination` if the part file is missing or is not the
    ///   one that the journal was created with.
    static func unfinished(in folder: Folder, named name: String) throws(TowlineError) -> ContentFile {
        let path = folder.path(of: name)
        let (report, _, part) = try JournalReader.open(folder, name)
        guard let part, report.isSamePart, let size = report.partLength else {
            throw TowlineError(
                .unusableDestination,
                "cannot read the downloaded bytes of \(TerminalSafeText.make(path)): "
                    + "the part file (NAME.tow) is missing or was replaced. Start the download again")
        }
        let representation = report.record.representation
        return ContentFile(
            part, completeLength: representation.completeLength,
            available: report.written.intersection(ByteRange(0, size)), version: representation.strongValidator)
    }

    /// Reads at most `count` bytes at `offset`, on a thread that may block. Returns fewer bytes at the end of an
    /// available range, and no bytes if the byte at `offset` is not available.
    package func read(at offset: Int64, atMost count: Int) async throws(TowlineError) -> [UInt8] {
        guard let run = available.range(holding: offset) else { return [] }
        let file = file
        return try await WorkThread.runBriefly { () throws(TowlineError) in
            try file.read(Int(min(Int64(count), run.upperBound - offset)), at: offset)
        }
    }
}

extension ContentFile {
    /// `true` if the complete length is known and all bytes of the file can be read.
    package var isWhole: Bool { completeLength.map { available.contains(ByteRange(0, $0)) } ?? false }
}
