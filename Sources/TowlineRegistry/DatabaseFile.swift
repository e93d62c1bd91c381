import Glibc

/// A check of a database and its log before SQLite opens them: the files of a newer version must stay unchanged to
/// the byte, and SQLite treats the frames after a bad frame of the log as an unfinished commit.
///
/// <https://www.sqlite.org/fileformat2.html> specifies both formats.
struct DatabaseFile {
    enum Finding: Equatable {
        /// The file is missing or empty.
        case absent
        /// The file looks like a database with this `user_version`.
        case database(version: Int)
        /// The file does not look like a database, or commits are lost; the value is the reason.
        case damaged(String)
    }

    static let magic = Array("SQLite format 3\u{0}".utf8)
    let path: String

    func inspect() -> Finding {
        let size = FileCall.size(path: path)
        if size == 0 { return .absent }
        guard let file = try? FileCall.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) else {
            return .damaged(
                "Towline rebuilt the list of downloads from its readable part and from journal files, "
                    + "because its file could not be opened. Add missing downloads again")
        }
        defer { close(file) }
        let header = FileCall.read(file, count: 100, at: 0)
        // A rollback journal: the first transaction was interrupted, and SQLite rolls it back.
        let isBeingMade = FileCall.exists(path + "-journal")
        guard header.count == 100, header.starts(with: DatabaseFile.magic), header[21...23].elementsEqual([64, 32, 32])
        else {
            guard !isBeingMade else { return .database(version: 0) }
            return .damaged(
                "Towline rebuilt the list of downloads from its readable part and from journal files, "
                    + "because its file had no valid SQLite header. Add missing downloads again")
        }
        let log = LogFile(path: path + "-wal").read()
        if log.lostCommits > 0 {
            return .damaged(
                "Towline rebuilt the list of downloads from its readable part and from journal files, "
                    + "because its write-ahead log was damaged. Add missing downloads again")
        }
        if log.frames == 0, !isBeingMade, header.number(at: 24) == header.number(at: 92) {
            let pageSize = Int(header[16]) << 8 | Int(header[17])
            if Int(header.number(at: 28)) * (pageSize == 1 ? 65_536 : pageSize) > size {
                return .damaged(
                    "Towline rebuilt the list of downloads from its readable part and from journal files, "
                        + "because the end of its file was missing. Add missing downloads again")
            }
        }
        return .database(version: Int(log.userVersion ?? header.number(at: 60)))
    }
}

/// The write-ahead log.
struct LogFile {
    let path: String

    struct Contents {
        /// The number of frames up to the last readable commit.
        var frames = 0
        /// The `user_version` of the last commit that wrote the first page; `nil` if no commit did.
        var userVersion: UInt32?
        /// The number of commits after an invalid frame. Each commit is synced before the next begins, so a power loss
        /// can damage only the last commit.
        var lostCommits = 0
    }

    func read() -> Contents {
        var contents = Contents()
        let size = FileCall.size(path: path)
        guard size > 32, let file = try? FileCall.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) else { return contents }
        defer { close(file) }
        let header = FileCall.read(file, count: 32, at: 0)
        let pageSize = Int(header.number(at: 8))
        var sum = Checksum(isBigEndian: header.number(at: 0) & 1 == 1)
        sum.add(header[..<24])
        let isSound =
            header.number(at: 0) & ~1 == 0x377F_0682 && (512...65_536).contains(pageSize)
            && sum.matches(header, at: 24)
        let frameSize = 24 + (isSound ? pageSize : 4096)
        var salts = Array(header[16..<24])
        var isChained = isSound
        var pending: UInt32?
        var commits = 0
        for (index, offset) in stride(from: 32, through: size - frameSize, by: frameSize).enumerated() {
            let frame = FileCall.read(file, count: frameSize, at: offset)
            guard frame.count == frameSize else { break }
            if index == 0, !isSound { salts = Array(frame[8..<16]) }
            guard frame[8..<16].elementsEqual(salts), salts.contains(where: { $0 != 0 }) else {
                isChained = false
                continue
            }
            let isCommit = frame.number(at: 4) != 0
            if isChained {
                sum.add(frame[..<8])
                sum.add(frame[24...])
                isChained = sum.matches(frame, at: 16)
            }
            guard isChained else {
                if isCommit { commits += 1 }
                continue
            }
            if frame.number(at: 0) == 1 { pending = frame.number(at: 24 + 60) }
            if isCommit {
                contents.frames = index + 1
                contents.userVersion = pending ?? contents.userVersion
            }
        }
        contents.lostCommits = commits > 1 ? commits : 0
        return contents
    }

    /// The log's running checksum.
    private struct Checksum {
        let isBigEndian: Bool
        private var first: UInt32 = 0
        private var second: UInt32 = 0

        init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

        mutating func add(_ bytes: ArraySlice<UInt8>) {
            var (first, second) = (first, second)
            bytes.withUnsafeBytes { raw in
                for offset in stride(from: 0, to: raw.count - 7, by: 8) {
                    let left = raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                    let right = raw.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                    first &+= (isBigEndian ? left.bigEndian : left.littleEndian) &+ second
                    second &+= (isBigEndian ? right.bigEndian : right.littleEndian) &+ first
                }
            }
            (self.first, self.second) = (first, second)
        }

        func matches(_ bytes: [UInt8], at offset: Int) -> Bool {
            bytes.number(at: offset) == first && bytes.number(at: offset + 4) == second
        }
    }
}

extension [UInt8] {
    /// Returns the four bytes at `offset` as a number, most significant byte first.
    func number(at offset: Int) -> UInt32 { self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }

    mutating func put(_ number: UInt32, at offset: Int) {
        for index in 0..<4 { self[offset + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
    }
}
