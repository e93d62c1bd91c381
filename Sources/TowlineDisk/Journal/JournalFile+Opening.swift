internal import TowlineCore
internal import TowlineEngine

/// The functions that fill the file of a new journal, and read that of an existing one.
extension JournalFile {
    /// The offset in bytes of the metadata in new journals. The section table of an existing journal states its own
    /// offsets and sizes.
    private static let metadataOffset: Int64 = 4096
    private static let marksOffset = metadataOffset + Int64(2 * MetadataBlock.byteCount)
    private static let slotCount = 1024
    private static let fileLength = marksOffset + Int64(slotCount * MarksSection.slotSize)

    /// The result of reading a file that has the name of a journal, which decides whether its download can be resumed.
    enum Finding {
        /// A journal with valid records of the downloaded bytes: the download can be resumed.
        case live(Contents)
        /// An invalidated journal, which records no bytes any more, with its metadata if that is readable. The header's
        /// state decides whether the part file must be removed.
        case retired(JournalHeader, MetadataBlock?)
        /// An empty file under the journal's name: a journal that was created and never filled.
        case blank
        /// A damaged journal, which is unusable: the download restarts from the beginning.
        case damaged
        /// A file that is not a journal. Towline must not rename or remove it without need.
        case foreign
    }

    /// Returns whether a file under the name of a new journal is a leftover of a crash: it is empty or begins like a
    /// journal.
    static func isLeftover(_ file: Descriptor) -> Bool {
        guard let bytes = try? file.read(JournalHeader.magic.count, at: 0) else { return false }
        return bytes.isEmpty || bytes == JournalHeader.magic
    }

    /// Returns whether a file that has the name of a journal is not one, so that it must be kept.
    static func isForeign(_ name: String, in folder: Folder, boot: BootIdentity) -> Bool {
        guard let file = try? folder.open(name, readOnly: true), case .foreign? = try? read(file, boot: boot) else {
            return false
        }
        return true
    }

    /// Writes a journal without any records of bytes to a new file. The caller renames it afterwards, so that the final
    /// name never has an incomplete journal.
    static func fill(
        _ file: Descriptor, record: DownloadRecord, link: LinkIdentity?, part: FileIdentity, boot: BootIdentity
    ) throws(TowlineError) -> Contents {
        let id = UInt64.random(in: 1...(.max))
        let header = JournalHeader(
            id: id,
            sections: [
                .init(
                    type: JournalHeader.metadataType, isNeeded: true, offset: metadataOffset,
                    length: marksOffset - metadataOffset),
                .init(
                    type: JournalHeader.marksType, isNeeded: true, offset: marksOffset,
                    length: fileLength - marksOffset),
            ], fileLength: fileLength)
        let digest = link.flatMap { LinkDigest(of: $0) }
        let metadata = MetadataBlock(sequence: 1, record: record, part: part, link: digest)
        let bytes = try metadata.encoded(journal: id)
        // The header is written first, so that a file left by a crash is recognized.
        try file.write(header.bytes, at: 0)
        try file.extend(to: fileLength)
        try file.write(bytes, at: metadataOffset)
        let marks = MarksSection(
            file: file, offset: marksOffset, slotCount: slotCount,
            owner: MarkOwner(journal: id, generation: record.generation, boot: boot))
        return Contents(
            header: header, metadata: metadata, block: 0, marks: marks, metadataOffset: metadataOffset, runs: [],
            damagedMarks: 0, durableSequence: 0)
    }

    /// Reads the file under a journal's name. Throws `unsupportedJournal` for a newer format version, and does not
    /// change that file. Bytes count as written only if they were recorded in `boot`, the current boot.
    static func read(_ file: Descriptor, boot: BootIdentity) throws(TowlineError) -> Finding {
        // A finished download is not a journal, even if its bytes look like one.
        if FinishedMark.isFinished(file, boot: boot) { return .foreign }
        let bytes = try file.read(JournalHeader.sectorSize, at: 0)
        if bytes.isEmpty { return .blank }
        let header: JournalHeader
        do {
            header = try JournalHeader(bytes)
        } catch {
            guard case .newerVersion(let version) = error else {
                let isWhole = try file.status().size == fileLength
                let isLikeJournal = bytes.starts(with: JournalHeader.magic) || bytes.allSatisfy { $0 == 0 } || isWhole
                return isLikeJournal ? .damaged : .foreign
            }
            throw TowlineError(
                .unsupportedJournal,
                "\(file.path) was written by a newer version of Towline (journal format \(version)). "
                    + "Use that version, or remove the file to restart the download from the beginning")
        }
        let metadata = try readMetadata(file, header)
        guard header.validity == .live else { return .retired(header, metadata?.block) }
        guard let metadata, let section = header.sections.first(where: { $0.type == JournalHeader.marksType }),
            let slotCount = slotCount(section)
        else { return .damaged }
        let marks = MarksSection(
            file: file, offset: section.offset, slotCount: slotCount,
            owner: MarkOwner(journal: header.id, generation: metadata.block.record.generation, boot: boot))
        let (runs, damaged) = try marks.read()
        return .live(
            Contents(
                header: header, metadata: metadata.block, block: metadata.index, marks: marks,
                metadataOffset: metadata.offset, runs: runs, damagedMarks: damaged, durableSequence: 0))
    }

    private static func slotCount(_ section: JournalHeader.Section) -> Int? {
        guard section.offset >= 0, section.offset % 512 == 0, section.length >= 0,
            section.offset < 1 << 40, section.length <= 65_536 * Int64(MarksSection.slotSize)
        else { return nil }
        return Int(section.length) / MarksSection.slotSize
    }

    /// Returns the newer of the two metadata blocks that is intact, its index (0 or 1) and the section's offset; `nil`
    /// if neither is intact.
    private static func readMetadata(
        _ file: Descriptor, _ header: JournalHeader
    ) throws(TowlineError) -> (block: MetadataBlock, index: Int, offset: Int64)? {
        let size = MetadataBlock.byteCount
        guard let section = header.sections.first(where: { $0.type == JournalHeader.metadataType }),
            section.offset >= 0, section.offset < 1 << 40, section.length == Int64(2 * size)
        else { return nil }
        let bytes = try file.read(2 * size, at: section.offset)
        let blocks = (0..<2).compactMap { index in
            MetadataBlock(bytes.dropFirst(index * size).prefix(size), journal: header.id).map { ($0, index) }
        }
        guard let newest = blocks.max(by: { $0.0.sequence < $1.0.sequence }) else { return nil }
        return (newest.0, newest.1, section.offset)
    }
}
