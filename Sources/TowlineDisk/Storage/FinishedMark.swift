import CCrypto
import Glibc
internal import TowlineCore

/// The extended attribute `user.towline` of a finished file. The mark shows a later run that the download is finished.
///
/// The mark has 40 bytes: version (a number for the kind of mark), the first half of the SHA-256 of the source URL (a
/// digest, because the file may be passed on and the URL is private), length, modification time. A file that was
/// changed later no longer matches.
///
/// An adopted file, which another program created and a checksum verified, has its own version. Towline never removes
/// it.
///
/// A file with a wrong checksum that was set aside has its own version, too: the next such file of the same download
/// replaces it, unless it was changed.
///
/// A file that was published without syncing has 56 bytes and its own version: the last 16 bytes identify the boot in
/// which the mark is valid. A power loss may destroy the file's bytes and keep the mark.
///
/// The bit `linkBit` means that a salted digest of the source URL follows (`LinkDigest`), after its length (1 byte). It
/// tells apart URLs that are equal without their secrets.
///
/// The bit `versionBit` means that the fields of `PublishedVersion` follow: the digest of the URL that responded (4
/// bytes), 1 if the modification time is from the server (1 byte), and the entity tag.
///
/// A part file without a journal gets its mark before its final name, with the bit `pendingBit`, which is removed after
/// the rename. A finished file is therefore never taken for a part file, even if a user renames it.
struct FinishedMark: Equatable, Sendable {
    static let name = "user.towline"
    private static let version: UInt64 = 1
    private static let fleetingVersion: UInt64 = 2
    private static let adoptedVersion: UInt64 = 3
    private static let unfinishedVersion: UInt64 = 4
    private static let refutedVersion: UInt64 = 5
    private static let pendingBit: UInt64 = 1 << 8
    private static let versionBit: UInt64 = 1 << 9
    private static let linkBit: UInt64 = 1 << 10
    /// The maximum length in bytes of an entity tag in a mark (the extended attribute of a finished file); longer ones
    /// are not stored.
    private static let longestTag = 256
    private static let longest = 56 + 1 + LinkDigest.longest + 5 + longestTag
    /// The maximum length in bytes of an extended attribute that needs no block of its own on ext4 with the usual
    /// inodes of 256 bytes. The marks (attributes) of small finished files omit an unneeded entity tag to stay within
    /// it.
    private static let longestInInode = 64

    /// The first half of the SHA-256 of the URL that the marked file came from, to recognize the same download again.
    let sourceDigest: [UInt8]
    /// The salted digest of that URL; `nil` if the URL needs none, or an older version of Towline wrote the mark.
    private(set) var link: LinkDigest?
    /// The length of the file in bytes when it finished. With another length, the file was changed and the mark is
    /// ignored.
    let length: Int64
    /// The modification time of the file when it finished, in seconds since 1970. With another time, the file was
    /// changed and the mark is ignored.
    let modified: Int64
    /// The only boot of the machine in which the mark (an extended attribute) is valid, because the file was not
    /// synced; `nil` if the file is durable.
    private(set) var boot: BootIdentity?
    /// `true` if another program created the file, and a checksum verified it. Towline never removes a file with this
    /// mark.
    var isAdopted: Bool { version == FinishedMark.adoptedVersion }
    private let version: UInt64
    /// The server's validators for the file, such as its entity tag; `nil` if the mark contains no validators.
    private(set) var server: PublishedVersion?
    /// `true` if the file does not have its final name yet, according to this mark.
    private(set) var isPending = false

    init(
        source: String, link: LinkIdentity? = nil, length: Int64, modified: Int64, under boot: BootIdentity?
    ) {
        sourceDigest = FinishedMark.digest(source)
        self.link = link.flatMap { LinkDigest(of: $0) }
        self.length = length
        self.modified = modified
        self.boot = boot
        version = FinishedMark.version
    }

    private init(_ file: FileStatus, source: String, version: UInt64) {
        sourceDigest = FinishedMark.digest(source)
        length = file.size
        modified = file.modifiedSeconds
        self.version = version
    }

    /// Creates the mark of a durable file that another program created, and that a checksum verified to be the file at
    /// a URL.
    init(adopted file: FileStatus, link: LinkIdentity) {
        self.init(file, source: link.text, version: FinishedMark.adoptedVersion)
        self.link = LinkDigest(of: link)
    }

    /// Reads the mark (the extended attribute of a finished file). Returns `nil` if the file has no valid mark, if it
    /// was changed since, if it has a wrong checksum, or if it was not durable before the machine's last start (`boot`
    /// is the current boot).
    init?(of file: Descriptor, boot: @autoclosure () -> BootIdentity) {
        self.init(any: file, boot: boot())
        if version == FinishedMark.refutedVersion { return nil }
    }

    private init?(any file: Descriptor, boot: @autoclosure () -> BootIdentity) {
        var bytes = [UInt8](repeating: 0, count: FinishedMark.longest)
        let size = FinishedMark.read(file, into: &bytes) ?? 0
        let stored = bytes.load(UInt64.self, at: 0)
        let written = stored & ~(FinishedMark.pendingBit | FinishedMark.versionBit | FinishedMark.linkBit)
        isPending = stored & FinishedMark.pendingBit != 0
        let count = written == FinishedMark.fleetingVersion ? 56 : 40
        var end = count
        if stored & FinishedMark.linkBit != 0 {
            guard size > count, size > count + Int(bytes[count]) else { return nil }
            end += 1 + Int(bytes[count])
            link = LinkDigest(stored: bytes[(count + 1)..<end])
            guard link != nil else { return nil }
        }
        guard stored & FinishedMark.versionBit == 0 ? size == end : size >= end + 5 else { return nil }
        version = written == FinishedMark.fleetingVersion ? FinishedMark.version : written
        switch (count, written) {
        case (40, FinishedMark.version), (40, FinishedMark.adoptedVersion), (40, FinishedMark.refutedVersion): break
        case (56, FinishedMark.fleetingVersion):
            let marked = BootIdentity(high: bytes.load(UInt64.self, at: 40), low: bytes.load(UInt64.self, at: 48))
            guard marked == boot() else { return nil }
            self.boot = marked
        default: return nil
        }
        guard let status = try? file.status() else { return nil }
        sourceDigest = Array(bytes[8..<24])
        length = bytes.load(Int64.self, at: 24)
        modified = bytes.load(Int64.self, at: 32)
        guard length == status.size, modified == status.modifiedSeconds else { return nil }
        if size > end { server = PublishedVersion(stored: bytes[end..<size]) }
    }

    /// Reads the extended attribute that contains the mark of a finished file into `bytes`. Returns its length, or
    /// `-errno` on failure; `nil` if the file is closed.
    private static func read(_ file: Descriptor, into bytes: inout [UInt8]) -> Int? {
        guard let number = try? file.acquire() else { return nil }
        defer { file.release() }
        return bytes.withUnsafeMutableBytes { file.syscall.getAttribute(number, name, $0) }
    }

    /// Copies the mark of `other` to `file`. Does nothing if `other` has no mark.
    static func copy(from other: Descriptor, to file: Descriptor) {
        var bytes = [UInt8](repeating: 0, count: longest)
        guard let count = read(other, into: &bytes), count > 0 else { return }
        write(Array(bytes.prefix(count)), to: file)
    }

    private static func write(_ bytes: [UInt8], to file: Descriptor) {
        guard let number = try? file.acquire() else { return }
        defer { file.release() }
        _ = bytes.withUnsafeBytes { file.syscall.setAttribute(number, name, $0) }
    }

    /// Marks an unfinished part file without a journal, so that Towline may remove it. The mark is an extended
    /// attribute, here only a version number of 8 bytes.
    static func putUnfinished(on file: Descriptor) {
        var bytes: [UInt8] = []
        bytes.append(number: unfinishedVersion)
        write(bytes, to: file)
    }

    /// Marks, with an extended attribute, a complete file whose checksum is wrong, so that the next such file from the
    /// URL `source` replaces it. Does nothing on a file system without such attributes.
    static func putRefuted(on file: Descriptor, source: String) {
        guard let status = try? file.status() else { return }
        FinishedMark(status, source: source, version: refutedVersion).store(in: file)
    }

    /// Returns whether a file was renamed because of a wrong checksum by a download from the URL `source`, and is
    /// unchanged.
    static func isRefuted(_ file: Descriptor, source: String) -> Bool {
        guard let mark = FinishedMark(any: file, boot: BootIdentity(high: 0, low: 0)) else { return false }
        return mark.version == refutedVersion && mark.isOf(source)
    }

    /// Returns whether a file without a journal is a part file of Towline: its mark says that it is unfinished or does
    /// not have its final name yet, or it is empty and has no mark. Never returns `true` for a finished file.
    static func isUnfinished(_ file: Descriptor) -> Bool {
        var bytes = [UInt8](repeating: 0, count: longest)
        guard let count = read(file, into: &bytes) else { return false }
        let stored = bytes.load(UInt64.self, at: 0)
        return switch count {
        case 8: stored == unfinishedVersion
        case 40...: stored & pendingBit != 0
        case ...0: (try? file.status().size) == 0
        default: false
        }
    }

    /// Returns whether a file, under any name, is unchanged since Towline completed it, according to its mark. Includes
    /// adopted files and files with a wrong checksum.
    static func isFinished(_ file: Descriptor, boot: @autoclosure () -> BootIdentity) -> Bool {
        FinishedMark(any: file, boot: boot()).map { !$0.isPending } ?? false
    }

    /// Returns whether the file's file system supports extended attributes, and so can store marks of finished files
    /// (fgetxattr(2), ENOTSUP).
    static func isKept(by file: Descriptor) -> Bool {
        var nothing: [UInt8] = []
        let count = read(file, into: &nothing)
        return count != -Int(ENOTSUP) && count != -Int(ENOSYS)
    }

    /// The mark that replaces this one once the file is synced; `nil` if this mark is already permanent.
    var lasting: FinishedMark? {
        guard boot != nil || isPending else { return nil }
        var mark = named
        mark.boot = nil
        return mark
    }

    /// A copy of this mark without `isPending`, for a file that has its final name.
    var named: FinishedMark {
        var mark = self
        mark.isPending = false
        return mark
    }

    /// Returns whether the marked file came from a URL that is equal to `source` without its secrets, by a comparison of
    /// digests.
    func isOf(_ source: String) -> Bool { sourceDigest == FinishedMark.digest(source) }

    /// Returns the relation of a URL to the URL of the marked file.
    func relation(to link: LinkIdentity) -> LinkRelation {
        link.relation(stored: self.link?.match(link), hasSameText: isOf(link.text), hasSameGroup: false)
    }

    /// Sets the server's modification time on a file, if given, and stores and returns the mark (an extended attribute
    /// that shows that the file is finished). Throws if the time cannot be set, unless the file system does not support
    /// that.
    ///
    /// - Parameter boot: the current boot if the file is not synced; otherwise `nil`.
    /// - Parameter isPending: `true` if the file has the name of a part file and no journal.
    @discardableResult
    static func put(
        on file: Descriptor, source: String, link: LinkIdentity? = nil, length: Int64, modified date: Int64?,
        version: PublishedVersion? = nil, under boot: BootIdentity?, isPending: Bool = false
    ) throws(TowlineError) -> FinishedMark {
        var date = date
        if let wanted = date {
            let syscall = file.syscall
            let code = try file.call { syscall.setModified($0, wanted) }
            if code.isLackingOrForbidden {
                // Storage on Android and MTP devices cannot set it.
                file.note(.time)
                date = nil
            } else if code < 0 {
                throw .dating(file.path, -code)
            }
        }
        // A file system with attributes keeps whole seconds for dates until 2038 at least; it may clamp other dates.
        var modified = date ?? -1
        if !(0...Int64(Int32.max)).contains(modified) { modified = try file.status().modifiedSeconds }
        var mark = FinishedMark(source: source, link: link, length: length, modified: modified, under: boot)
        mark.isPending = isPending
        mark.server = version
        mark.server?.isDated = date == modified
        // Small files are numerous, and the date is enough to validate them.
        if mark.link == nil, length <= SmallFilePolicy.longest, date == modified, mark.bytes.count > longestInInode {
            mark.server?.entityTag = nil
        }
        mark.store(in: file)
        return mark
    }

    /// Stores this mark as an extended attribute of the file. Ignores the failure of file systems that have no
    /// attributes or no room for them.
    func store(in file: Descriptor) { FinishedMark.write(bytes, to: file) }

    private var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(FinishedMark.longest)
        var number = boot == nil ? version : FinishedMark.fleetingVersion
        if isPending { number |= FinishedMark.pendingBit }
        if server != nil { number |= FinishedMark.versionBit }
        if link != nil { number |= FinishedMark.linkBit }
        bytes.append(number: number)
        bytes += sourceDigest
        bytes.append(number: length)
        bytes.append(number: modified)
        if let boot {
            bytes.append(number: boot.high)
            bytes.append(number: boot.low)
        }
        if let link {
            bytes.append(UInt8(link.bytes.count))
            bytes += link.bytes
        }
        if let server {
            bytes.append(number: server.location)
            bytes.append(server.isDated ? 1 : 0)
            let tag = server.entityTag?.fieldValue.utf8
            if let tag, tag.count <= FinishedMark.longestTag { bytes += tag }
        }
        return bytes
    }

    private static func digest(_ source: String) -> [UInt8] {
        var source = source
        var value = [UInt8](repeating: 0, count: 32)
        let isThere = source.withUTF8 { ccrypto_sha256($0.baseAddress, $0.count, &value) == 1 }
        // Without a digest no finished file is recognized, which is the only consequence.
        return isThere ? Array(value.prefix(16)) : []
    }
}

extension PublishedVersion {
    /// Decodes the server's validators, such as the entity tag, from the end of a `FinishedMark`.
    fileprivate init(stored bytes: ArraySlice<UInt8>) {
        let bytes = Array(bytes)
        let tag = String(validating: bytes[5...], as: UTF8.self)
        self.init(
            entityTag: tag.flatMap(EntityTag.init(fieldValue:)), location: bytes.load(UInt32.self, at: 0),
            isDated: bytes[4] == 1)
    }
}
