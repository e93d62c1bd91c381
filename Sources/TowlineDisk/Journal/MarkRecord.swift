import CTowline

/// A mark: a record of 64 bytes that states "the bytes [start, end) of this journal's part file are written (under this
/// boot identity)", or "… are durable". Written with one call, and never across a sector boundary.
struct MarkRecord: Sendable {
    /// The state of the bytes that a mark (one record of the journal) describes: written (valid until the machine
    /// restarts) or durable.
    enum Kind: UInt8 {
        case written = 1
        case durable = 2
    }

    static let byteCount = 64

    /// The mark (a record of the journal) as on disk: eight little-endian words.
    private var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    /// The empty mark (record of the journal), which records no bytes: all of its bytes are zero.
    static let none = MarkRecord()

    private init() { words = (0, 0, 0, 0, 0, 0, 0, 0) }

    init(kind: Kind, start: Int64, end: Int64, slot: UInt16, owner: MarkOwner) {
        let place = UInt64(owner.generation) | UInt64(slot) << 32 | UInt64(kind.rawValue) << 48
        words = (
            UInt64(bitPattern: start).littleEndian, UInt64(bitPattern: end).littleEndian,
            owner.boot.high.littleEndian, owner.boot.low.littleEndian, owner.journal.littleEndian, place.littleEndian,
            0, 0
        )
        words.7 = (UInt64(checksum) << 32).littleEndian
    }

    /// Decodes a mark, which states that a range of the part file was downloaded, from 64 bytes of the journal. Does
    /// not validate it: see `isSound` and `belongs`.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init()
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(64))) }
    }

    /// The CRC-32C of the first 60 of the 64 bytes of the record, which detects a damaged record.
    private var checksum: UInt32 { Swift.withUnsafeBytes(of: words) { towline_crc32c(0, $0.baseAddress, 60) } }

    /// Returns whether the mark (record of the journal) was never written or was cleared: all bytes are zero.
    var isEmpty: Bool {
        words.0 | words.1 | words.2 | words.3 == 0 && words.4 | words.5 | words.6 | words.7 == 0
    }

    /// Returns whether the mark's checksum and range are valid, and whether it was written for this slot (its position
    /// in the journal) and this kind, written or durable bytes.
    func isSound(kind: Kind, slot: Int) -> Bool {
        let place = words.5.littleEndian
        return UInt32(words.7.littleEndian >> 32) == checksum && UInt8(truncatingIfNeeded: place >> 48) == kind.rawValue
            && UInt16(truncatingIfNeeded: place >> 32) == slot && start >= 0 && end >= start
    }

    /// Returns whether the mark (record of the journal) was written for the owner's journal and part file and, with
    /// `sameBoot`, in the owner's boot of the machine. Other marks are ignored.
    func belongs(to owner: MarkOwner, sameBoot: Bool) -> Bool {
        words.4.littleEndian == owner.journal && UInt32(truncatingIfNeeded: words.5.littleEndian) == owner.generation
            && (!sameBoot || (words.2.littleEndian == owner.boot.high && words.3.littleEndian == owner.boot.low))
    }

    var start: Int64 { Int64(bitPattern: words.0.littleEndian) }
    var end: Int64 { Int64(bitPattern: words.1.littleEndian) }

    func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try Swift.withUnsafeBytes(of: words, body)
    }
}

/// The journal, the part file and the boot of the machine that a mark was written for. A mark with another journal or
/// part file is ignored; a mark of another boot is valid only if it states durable bytes.
struct MarkOwner: Sendable {
    /// The random number that identifies the journal (`JournalHeader.id`).
    let journal: UInt64
    /// The number of the part file, higher for each new part file of a download (`DownloadRecord.generation`).
    let generation: UInt32
    let boot: BootIdentity
}
