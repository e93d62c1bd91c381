import CTowline
internal import TowlineCore
internal import TowlineEngine

/// The metadata of a journal (URL, name, length, validators, checksums), as fields of tag, length and value. A journal
/// has two blocks and writes them alternately, so that the older block stays intact while the newer one is written.
struct MetadataBlock: Sendable {
    /// The space in bytes that a journal reserves for one block of metadata (URL, name, length, validators, checksums).
    static let byteCount = 32 * 1024
    private static let headerSize = 24

    /// The sequence number of this block of metadata. Of the two blocks in a journal, the one with the higher number is
    /// newer.
    var sequence: UInt64
    /// The metadata in this block: URL, name, length, validators and checksums of the download.
    var record: DownloadRecord
    /// The identity of the part file whose bytes the journal records.
    var part: FileIdentity
    /// The salted digest of the source URL; `nil` if the URL needs none, or an older version of Towline wrote the journal.
    var link: LinkDigest?

    /// The source URL, for comparisons.
    var source: StoredSource {
        let (text, digest) = (record.source, link)
        return StoredSource { link in
            link.relation(
                stored: digest?.match(link), hasSameText: text == link.text, hasSameGroup: link.isInGroup(of: text))
        }
    }

    private enum Tag: UInt16 {
        case source = 1
        case resolved = 2
        case name = 3
        case completeLength = 4
        case entityTag = 5
        case lastModified = 6
        case date = 7
        case checksum = 8
        case generation = 9
        case part = 10
        case mediaType = 11
        case lacksRanges = 12
        case publicAddressesOnly = 13
        case mayBePlain = 14
        case download = 15
        case link = 17
    }

    /// The numbers that stand for the checksum algorithms in the journal's metadata on disk.
    private static let algorithms: [(UInt8, Checksum.Algorithm)] = [
        (1, .md5), (2, .sha1), (3, .sha256), (4, .sha512), (5, .crc32c),
    ]

    /// Returns the block of metadata as bytes for the journal, which may be shorter than `byteCount`. Throws
    /// `unusableURL` if the URL is too long.
    /// - Parameter journal: the identity of the journal (`JournalHeader.id`).
    func encoded(journal: UInt64) throws(TowlineError) -> [UInt8] {
        var fields = encodedFields(record)
        if fields.count > MetadataBlock.byteCount - MetadataBlock.headerSize {
            // The target of redirects can be found out again.
            var shorter = record
            shorter.resolved = record.source
            fields = encodedFields(shorter)
        }
        guard fields.count <= MetadataBlock.byteCount - MetadataBlock.headerSize else {
            throw TowlineError(
                .unusableURL,
                "the URL of \(record.name) is too long for the journal file: the limit is about 32,000 bytes. "
                    + "Use a shorter URL")
        }
        var bytes: [UInt8] = []
        bytes.append(number: UInt32(fields.count))
        bytes.append(number: UInt32(0))
        bytes.append(number: sequence)
        bytes.append(number: journal)
        bytes += fields
        bytes.store(MetadataBlock.checksum(bytes), at: 4)
        return bytes
    }

    /// Decodes a block of metadata. Returns `nil` if the bytes are not an intact block of the journal with this
    /// identity.
    init?(_ bytes: some Collection<UInt8>, journal: UInt64) {
        var bytes = Array(bytes)
        guard bytes.count >= MetadataBlock.headerSize else { return nil }
        let length = Int(bytes.load(UInt32.self, at: 0))
        guard length <= bytes.count - MetadataBlock.headerSize else { return nil }
        bytes.removeSubrange((MetadataBlock.headerSize + length)...)
        let expected = bytes.load(UInt32.self, at: 4)
        bytes.store(UInt32(0), at: 4)
        guard expected == MetadataBlock.checksum(bytes), bytes.load(UInt64.self, at: 16) == journal else { return nil }
        let sequence = bytes.load(UInt64.self, at: 8)
        // The next block needs a higher number.
        guard sequence > 0, sequence < .max / 2 else { return nil }
        self.init(fields: bytes.dropFirst(MetadataBlock.headerSize), sequence: sequence)
    }

    init(sequence: UInt64, record: DownloadRecord, part: FileIdentity, link: LinkDigest? = nil) {
        self.link = link
        self.sequence = sequence
        self.record = record
        self.part = part
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        bytes.withUnsafeBytes { towline_crc32c(0, $0.baseAddress, $0.count) }
    }

    private func encodedFields(_ record: DownloadRecord) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ tag: Tag, _ value: [UInt8]) {
            bytes.append(number: tag.rawValue)
            bytes.append(number: UInt32(value.count))
            bytes += value
        }
        func add(_ tag: Tag, _ number: Int64?) {
            guard let number else { return }
            var value: [UInt8] = []
            value.append(number: number)
            add(tag, value)
        }
        add(.source, Array(record.source.utf8))
        add(.resolved, Array(record.resolved.utf8))
        add(.name, Array(record.name.utf8))
        add(.completeLength, record.representation.completeLength)
        if let tag = record.representation.entityTag { add(.entityTag, Array(tag.fieldValue.utf8)) }
        if let type = record.representation.mediaType { add(.mediaType, Array(type.utf8)) }
        add(.lastModified, record.representation.lastModified?.secondsSince1970)
        add(.date, record.representation.date?.secondsSince1970)
        for checksum in record.checksums {
            let code = MetadataBlock.algorithms.first { $0.1 == checksum.algorithm }?.0 ?? 0
            add(.checksum, [code] + checksum.value)
        }
        add(.generation, Int64(record.generation))
        if record.lacksRanges { add(.lacksRanges, 1) }
        if record.publicAddressesOnly { add(.publicAddressesOnly, 1) }
        if record.mayBePlain { add(.mayBePlain, 1) }
        if let download = record.download { add(.download, download.bytes) }
        if let link { add(.link, link.bytes) }
        var identity: [UInt8] = []
        identity.append(number: part.device)
        identity.append(number: part.inode)
        identity.append(number: part.birthSeconds)
        identity.append(number: part.birthNanoseconds)
        add(.part, identity)
        return bytes
    }

    /// Decodes the fields (tag, length, value) of a block of metadata. Skips unknown tags; returns `nil` without
    /// source, name, generation or part.
    private init?(fields: some Collection<UInt8>, sequence: UInt64) {
        var rest = Array(fields)[...]
        var record = DownloadRecord(
            source: "", resolved: "", name: "", representation: Representation(), checksums: [], generation: 0)
        var part = FileIdentity()
        var link: LinkDigest?
        var seen: Set<Tag> = []
        while !rest.isEmpty {
            guard rest.count >= 6 else { return nil }
            let head = Array(rest.prefix(6))
            let length = Int(head.load(UInt32.self, at: 2))
            guard rest.count - 6 >= length else { return nil }
            let value = Array(rest.dropFirst(6).prefix(length))
            rest = rest.dropFirst(6 + length)
            guard let tag = Tag(rawValue: head.load(UInt16.self, at: 0)) else { continue }
            if tag == .link { link = LinkDigest(stored: value) }
            guard MetadataBlock.read(tag, value, into: &record, &part) else { return nil }
            seen.insert(tag)
        }
        guard seen.isSuperset(of: [.source, .name, .generation, .part]) else { return nil }
        if !seen.contains(.resolved) { record.resolved = record.source }
        self.init(sequence: sequence, record: record, part: part, link: link)
    }

    private static func read(
        _ tag: Tag, _ value: [UInt8], into record: inout DownloadRecord, _ part: inout FileIdentity
    ) -> Bool {
        let number = value.count == 8 ? value.load(Int64.self, at: 0) : nil
        switch tag {
        case .source: record.source = String(decoding: value, as: UTF8.self)
        case .resolved: record.resolved = String(decoding: value, as: UTF8.self)
        case .name: record.name = String(decoding: value, as: UTF8.self)
        case .mediaType: record.representation.mediaType = String(decoding: value, as: UTF8.self)
        case .entityTag:
            record.representation.entityTag = EntityTag(fieldValue: String(decoding: value, as: UTF8.self))
        case .completeLength:
            guard let number, number >= 0 else { return false }
            record.representation.completeLength = number
        case .lastModified: record.representation.lastModified = number.map { HTTPDate(secondsSince1970: $0) }
        case .date: record.representation.date = number.map { HTTPDate(secondsSince1970: $0) }
        case .checksum:
            guard let algorithm = algorithms.first(where: { $0.0 == value.first })?.1 else { return true }
            guard let checksum = Checksum(algorithm: algorithm, value: Array(value.dropFirst())) else { return false }
            record.checksums.append(checksum)
        case .generation:
            // The next generation needs a higher number.
            guard let number, let generation = UInt32(exactly: number), generation < .max / 2 else { return false }
            record.generation = generation
        case .lacksRanges: record.lacksRanges = number == 1
        case .publicAddressesOnly: record.publicAddressesOnly = number == 1
        case .mayBePlain: record.mayBePlain = number == 1
        case .download: record.download = DownloadID(bytes: value)
        case .link: break
        case .part:
            guard value.count == 28 else { return false }
            part.device = value.load(UInt64.self, at: 0)
            part.inode = value.load(UInt64.self, at: 8)
            part.birthSeconds = value.load(Int64.self, at: 16)
            part.birthNanoseconds = value.load(UInt32.self, at: 24)
        }
        return true
    }
}
