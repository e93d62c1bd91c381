import Glibc
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// A directory of the real file system, removed at the end.
final class ScratchDirectory {
    let path: String

    init() {
        var template = Array("/tmp/towline-disk-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template))
    }

    deinit {
        for name in names { remove(path + "/" + name) }
        rmdir(path)
    }

    /// Returns another descriptor of the open file that this process has under that name; `nil` if there is no such
    /// file.
    func duplicate(of name: String) -> Int32? {
        for number in Int32(3)..<1024 {
            var target = [CChar](repeating: 0, count: 4096)
            guard readlink("/proc/self/fd/\(number)", &target, target.count - 1) > 0 else { continue }
            let link = target.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            if String(decoding: link, as: UTF8.self) == path + "/" + name { return fcntl(number, F_DUPFD_CLOEXEC, 3) }
        }
        return nil
    }

    func place(_ name: String = "file") -> Place { Place(directory: path, name: name) }

    subscript(name: String) -> [UInt8]? {
        get {
            guard let stream = fopen(path + "/" + name, "r") else { return nil }
            defer { fclose(stream) }
            fseek(stream, 0, SEEK_END)
            var bytes = [UInt8](repeating: 0, count: ftell(stream))
            rewind(stream)
            let count = fread(&bytes, 1, bytes.count, stream)
            return Array(bytes.prefix(count))
        }
        set {
            guard let newValue else {
                unlink(path + "/" + name)
                return
            }
            guard let stream = fopen(path + "/" + name, "w") else { return }
            fwrite(newValue, 1, newValue.count, stream)
            fclose(stream)
        }
    }

    /// Overwrites some bytes at `offset`.
    func poke(_ name: String, at offset: Int, _ bytes: [UInt8]) {
        let file = open(path + "/" + name, O_WRONLY)
        pwrite(file, bytes, bytes.count, offset)
        close(file)
    }

    var names: [String] {
        var names: [String] = []
        guard let folder = try? Folder(path, syscall: SystemCalls()) else { return [] }
        names = (try? folder.names()) ?? []
        return names.filter { $0 != "." && $0 != ".." }.sorted()
    }

    func mode(_ name: String) -> UInt32 {
        var status = stat()
        return lstat(path + "/" + name, &status) == 0 ? status.st_mode & 0o7777 : 0
    }
}

private let patternTable: [UInt8] = (0..<(1 << 16)).map { UInt8(truncatingIfNeeded: ($0 * 31 + $0 / 251) % 255) | 1 }

/// Returns bytes that depend on their offset; never zero.
func pattern(_ range: Range<Int>, seed: UInt8 = 0) -> [UInt8] {
    var bytes: [UInt8] = []
    var start = range.lowerBound
    while start < range.upperBound {
        let place = start % patternTable.count
        let count = min(patternTable.count - place, range.upperBound - start)
        bytes += patternTable[place..<(place + count)]
        start += count
    }
    return seed == 0 ? bytes : bytes.map { $0 ^ seed }
}

extension OpenPart {
    /// Writes a range of `pattern` and marks it, in a slot of its own.
    func fill(_ range: Range<Int>, seed: UInt8 = 0) throws {
        let slot = try journal?.claimSlot(at: Int64(range.lowerBound))
        try pattern(range, seed: seed).withUnsafeBytes { try sink.write($0, at: Int64(range.lowerBound)) }
        try slot?.mark(upTo: Int64(range.upperBound))
        if let slot { journal?.release(slot) }
    }

    /// Returns bytes as the sink reads them.
    func bytes(_ range: Range<Int>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        let count = try bytes.withUnsafeMutableBytes { try sink.read(into: $0, at: Int64(range.lowerBound)) }
        return Array(bytes.prefix(count))
    }
}

extension DownloadRecord {
    /// Returns a record with a value for every field.
    static func sample(length: Int64?, generation: UInt32 = 1, name: String = "file") -> DownloadRecord {
        let checksums = [
            Checksum(algorithm: .sha256, value: Array(0..<32)), Checksum(algorithm: .crc32c, value: [1, 2, 3, 4]),
        ]
        return DownloadRecord(
            source: "http://example.test/file?a=1", resolved: "http://mirror.example.test/x", name: name,
            representation: Representation(
                completeLength: length, entityTag: EntityTag(fieldValue: "W/\"a b\""),
                lastModified: HTTPDate(secondsSince1970: 1_600_000_000), date: HTTPDate(secondsSince1970: 1_700_000_000)
            ),
            checksums: checksums.compactMap { $0 }, generation: generation)
    }
}

extension PublishTerms {
    /// Returns terms for a durable file under a free name.
    static func plain(_ length: Int64) -> PublishTerms {
        PublishTerms(existing: .fail, durable: true, length: length, modified: nil)
    }
}

extension FileStorage {
    /// Surveys the place and expects an unfinished download.
    func unfinished(_ place: Place) throws -> OpenPart? {
        if case .unfinished(let part) = try survey(place) { return part }
        return nil
    }

    /// Creates a part file of `length`, with a journal unless `journaled` is `false`.
    func make(_ place: Place, length: Int64, generation: UInt32 = 1, journaled: Bool = true) throws -> OpenPart {
        try create(
            place, record: .sample(length: length, generation: generation, name: place.name),
            terms: CreateTerms(journaled: journaled))
    }
}
