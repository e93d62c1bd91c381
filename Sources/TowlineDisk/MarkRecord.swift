import CTowline

/// A mark: a record of 64 bytes that states "the bytes [start, end) of this journal's part file are written (under this
/// boot identity)", or "… are durable". Written with one call, and never across a sector boundary.
struct MarkRecord: Sendable {
    enum Kind: UInt8 {
        case written = 1
        case durable = 2
    }

    static let byteCount = 64

    /// The record as on disk: eight little-endian words.
    private var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    /// The record that makes no claim: all bytes are zero.
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

    /// Decodes a record.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init()
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(64))) }
    }

    /// CRC-32C of the first 60 bytes.
    private var checksum: UInt32 { Swift.withUnsafeBytes(of: words) { towline_crc32c(0, $0.baseAddress, 60) } }

    /// Returns whether the record was never written.
    var isEmpty: Bool {
        words.0 | words.1 | words.2 | words.3 == 0 && words.4 | words.5 | words.6 | words.7 == 0
    }

    /// Returns whether the record is intact and is at its own place.
    func isSound(kind: Kind, slot: Int) -> Bool {
        let place = words.5.littleEndian
        return UInt32(words.7.littleEndian >> 32) == checksum && UInt8(truncatingIfNeeded: place >> 48) == kind.rawValue
            && UInt16(truncatingIfNeeded: place >> 32) == slot && start >= 0 && end >= start
    }

    /// Returns whether the record belongs to this journal and, with `sameBoot`, to this boot.
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

/// The identity of the journal, generation and boot that a mark belongs to.
struct MarkOwner: Sendable {
    /// `JournalHeader.id`.
    let journal: UInt64
    /// `DownloadRecord.generation`.
    let generation: UInt32
    /// The boot in which the marks are written.
    let boot: BootIdentity
}
