import CTowline
internal import TowlineCore

/// The first sector of a journal: its identity and its section table. `docs/on-disk-format.md` has the layout.
struct JournalHeader: Sendable {
    /// The validity of a journal, which decides how a later run treats the journal and the part file.
    enum Validity: UInt16 {
        /// The journal's records of downloaded bytes are valid: the download can be resumed.
        case live = 1
        /// The journal records no bytes any more. A part file next to it was not created with the journal or is kept
        /// for the user, so it is not removed.
        case void = 2
        /// The journal records no bytes any more, and the part file that it was created with must be removed.
        case discarded = 3
    }

    /// The reason why this version of Towline cannot use the header of a journal.
    enum Defect: Error {
        case damaged
        case newerVersion(UInt16)
    }

    /// An entry of the section table in a journal's header: the type, offset and length (in bytes) of a part of the
    /// journal. Readers skip sections of unknown types, but cannot use a journal with an unknown section that is marked
    /// as needed.
    struct Section {
        var type: UInt16
        var isNeeded: Bool
        var offset: Int64
        var length: Int64
    }

    static let sectorSize = 512
    static let magic: [UInt8] = Array("TOWJRNL\0".utf8)
    static let majorVersion: UInt16 = 1
    static let minorVersion: UInt16 = 0
    static let metadataType: UInt16 = 1
    static let marksType: UInt16 = 2

    /// The first sector of the journal as it is on disk; fields that this version does not know are written back
    /// unchanged.
    private(set) var bytes: [UInt8]

    /// Creates the header of a new journal, which is `live`. `fileLength` is the journal's length in bytes.
    init(id: UInt64, sections: [Section], fileLength: Int64) {
        bytes = [UInt8](repeating: 0, count: JournalHeader.sectorSize)
        bytes.replaceSubrange(0..<8, with: JournalHeader.magic)
        bytes.store(JournalHeader.majorVersion, at: 8)
        bytes.store(JournalHeader.minorVersion, at: 10)
        bytes.store(UInt16(sections.count), at: 14)
        bytes.store(id, at: 16)
        bytes.store(UInt64(bitPattern: fileLength), at: 24)
        for (index, section) in sections.enumerated() {
            let at = 32 + index * 24
            bytes.store(section.type, at: at)
            bytes.store(UInt16(section.isNeeded ? 1 : 0), at: at + 2)
            bytes.store(UInt64(bitPattern: section.offset), at: at + 8)
            bytes.store(UInt64(bitPattern: section.length), at: at + 16)
        }
        validity = .live
    }

    /// Parses the first sector of a journal. Throws `damaged` also if the sector is not that of a journal.
    init(_ bytes: [UInt8]) throws(Defect) {
        guard bytes.count == JournalHeader.sectorSize, bytes.starts(with: JournalHeader.magic) else { throw .damaged }
        self.bytes = bytes
        guard bytes.load(UInt32.self, at: 508) == checksum else { throw .damaged }
        let major = bytes.load(UInt16.self, at: 8)
        guard major <= JournalHeader.majorVersion else { throw .newerVersion(major) }
        guard major == JournalHeader.majorVersion, Validity(rawValue: bytes.load(UInt16.self, at: 12)) != nil,
            bytes.load(UInt16.self, at: 14) <= 19
        else { throw .damaged }
        let known = [JournalHeader.metadataType, JournalHeader.marksType]
        if sections.contains(where: { $0.isNeeded && !known.contains($0.type) }) { throw .newerVersion(major) }
    }

    /// The identity of the journal, a random number. Records and metadata with another identity, left in reused disk
    /// blocks by an older journal, are ignored.
    var id: UInt64 { bytes.load(UInt64.self, at: 16) }

    /// The validity of the journal according to this header.
    var validity: Validity {
        get { Validity(rawValue: bytes.load(UInt16.self, at: 12)) ?? .void }
        set {
            bytes.store(newValue.rawValue, at: 12)
            bytes.store(checksum, at: 508)
        }
    }

    /// The parts of the journal file, such as metadata and marks, that the section table of the header lists.
    var sections: [Section] {
        (0..<Int(bytes.load(UInt16.self, at: 14))).map { index in
            let at = 32 + index * 24
            return Section(
                type: bytes.load(UInt16.self, at: at), isNeeded: bytes.load(UInt16.self, at: at + 2) & 1 == 1,
                offset: Int64(bitPattern: bytes.load(UInt64.self, at: at + 8)),
                length: Int64(bitPattern: bytes.load(UInt64.self, at: at + 16)))
        }
    }

    private var checksum: UInt32 { bytes.withUnsafeBytes { towline_crc32c(0, $0.baseAddress, 508) } }
}

/// Functions that read and write the little-endian numbers of a journal in byte arrays.
extension [UInt8] {
    /// Overwrites the bytes at `offset` with a number in little-endian order.
    mutating func store<Number: FixedWidthInteger>(_ number: Number, at offset: Int) {
        withUnsafeMutableBytes { $0.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self) }
    }

    /// Returns the little-endian number of the given type at `offset` in these bytes of a journal.
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_ type: Number.Type, at offset: Int) -> Number {
        withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
    }

    /// Appends the bytes of a number in little-endian order.
    mutating func append<Number: FixedWidthInteger>(number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
