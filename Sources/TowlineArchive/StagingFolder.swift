import CTowline
import Glibc
internal import TowlineCore

/// The temporary directory `.NAME.unpacking-N` of an archive, beside the final directory of the content.
///
/// The name begins with a dot, so that programs that watch the parent directory, such as media servers, do not read
/// incomplete files. Older versions used the name without the dot.
///
/// Only its owner has access (0700). The directory is locked during unpacking and contains a mark file. A directory
/// with a mark and no lock was left by a crash and is deleted. The content is a subdirectory, so that the mark stays
/// until the content has its final name: a kill at any moment leaves only directories that can be recognized.
final class StagingFolder {
    private static let mark = ".towline-unpacking"
    private static let content = "content"

    /// The descriptor of the content directory, which receives all entries.
    let descriptor: Int32
    private let path: String
    private let name: String
    private let own: Int32
    private let parent: Int32
    private let parentPath: String

    /// Creates and locks the temporary directory, and deletes directories that a crash left. Throws `destinationExists`
    /// if the final name exists.
    ///
    /// - Parameters:
    ///   - folder: the open parent directory. All later calls use this directory, whatever its path leads to then.
    ///   - parentPath: the path of the parent directory, for messages.
    init(in folder: Int32, at parentPath: String, for final: String) throws(TowlineError) {
        let parent = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw .unpacking("cannot open", parentPath, errno) }
        do throws(TowlineError) {
            Self.removeLeftovers(parent, of: final)
            guard !Self.isThere(parent, final) else { throw Self.taken(parentPath + "/" + final) }
            (name, own) = try Self.make(parent, parentPath, final)
        } catch {
            Glibc.close(parent)
            throw error
        }
        self.parent = parent
        self.parentPath = parentPath
        path = parentPath + "/" + name
        descriptor =
            mkdirat(own, Self.content, 0o777) == 0
            ? openat(own, Self.content, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1
        guard descriptor >= 0 else { throw .unpacking("cannot write to", path, errno) }
    }

    deinit {
        // Keeps the lock until the directory is deleted.
        Self.remove(parent, name, own)
        for file in [descriptor, own, parent] where file >= 0 { Glibc.close(file) }
    }

    /// The type of `towline_rename`.
    typealias Rename = (Int32, UnsafePointer<CChar>?, Int32, UnsafePointer<CChar>?, Int32) -> Int32

    /// Renames the content to its final name.
    ///
    /// - Parameter receipt: the receipt to write on the content, if the file system supports extended attributes.
    func publish(
        as final: String, durable: Bool, receipt: String? = nil, renaming: Rename = towline_rename
    ) throws(TowlineError) {
        // Written before the sync, so that no crash leaves the final name without the receipt.
        if let receipt { UnpackReceipt.write(receipt, on: descriptor) }
        if durable {
            let code = towline_syncfs(descriptor)
            guard code >= 0 else {
                throw .unpackingFailed(
                    "the archive was not unpacked because its files could not be saved to the disk "
                        + "(\(TowlineError.systemReason(-code))). The temporary directory \(path) was deleted. "
                        + "Check the disk and its free space, then try again",
                    -code)
            }
        }
        let code = give(final, renaming)
        guard code >= 0 else {
            let target = parentPath + "/" + final
            throw code == -EEXIST
                ? Self.taken(target)
                : .unpackingFailed(
                    "the archive was not unpacked because the temporary directory \(path) could not be renamed to "
                        + "\(target) (\(TowlineError.systemReason(-code))). The files unpacked so far were deleted. "
                        + "Check the destination and try again",
                    -code)
        }
        guard !durable || fsync(parent) == 0 || towline_syncfs(parent) >= 0 else {
            let number = errno
            throw .unpackingFailed(
                "the archive was unpacked to \(parentPath)/\(final), but this directory may be missing after a power "
                    + "failure because it could not be saved to the disk (\(TowlineError.systemReason(number))). "
                    + "Check the disk",
                number)
        }
    }

    /// Renames the content if the final name does not exist. Returns 0 or a negative error number.
    ///
    /// If the file system cannot do this in one step (NFS, some FUSE), checks the name first. An entry that appears
    /// after the check is kept, unless it is an empty directory: a rename of a directory replaces nothing else.
    private func give(_ final: String, _ renaming: Rename) -> Int32 {
        let code = renaming(own, Self.content, parent, final, 1)
        guard [-EINVAL, -ENOSYS, -EOPNOTSUPP].contains(code) else { return code }
        if Self.isThere(parent, final) { return -EEXIST }
        let plain = renaming(own, Self.content, parent, final, 0)
        return [-ENOTEMPTY, -ENOTDIR].contains(plain) ? -EEXIST : plain
    }

    // MARK: Creating and deleting

    private static func taken(_ path: String) -> TowlineError {
        TowlineError(
            .destinationExists,
            "\(path) already exists, so the archive was not unpacked. Move or rename \(path) and try again",
            systemError: EEXIST)
    }

    private static func isThere(_ parent: Int32, _ name: String) -> Bool {
        var status = stat()
        return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    }

    private static func make(
        _ parent: Int32, _ parentPath: String, _ final: String
    ) throws(TowlineError) -> (String, Int32) {
        for number in 1...1000 {
            let name = Self.name(final, number)
            if mkdirat(parent, name, 0o700) != 0 {
                guard errno == EEXIST else { throw .unpacking("cannot create", parentPath + "/" + name, errno) }
                continue
            }
            let own = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            if own >= 0, flock(own, LOCK_EX) == 0, place(own, mark) { return (name, own) }
            let number = errno
            if own >= 0 { Glibc.close(own) }
            // Another process deleted the new, empty directory as a leftover of a crash. Tries the next number.
            guard number == ENOENT else {
                throw .unpacking("cannot write to", parentPath + "/" + name, number)
            }
        }
        throw TowlineError(
            .destinationExists,
            """
            the archive was not unpacked because no temporary directory could be created: \
            \(parentPath)/\(Self.name(final, 1)) to \(Self.name(final, 1000)) already exist. Delete them and try again
            """)
    }

    private static func place(_ folder: Int32, _ name: String) -> Bool {
        let file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        return file >= 0 && Glibc.close(file) == 0
    }

    /// Returns the name of the temporary directory. A long name is shortened, so that the result has at most 255 bytes.
    private static func name(_ final: String, _ number: Int, isHidden: Bool = true) -> String {
        let suffix = ".unpacking-\(number)"
        var stem = (isHidden ? "." : "") + final
        while stem.utf8.count + suffix.utf8.count > 255 { stem.unicodeScalars.removeLast() }
        return stem + suffix
    }

    /// Deletes the directories that crashes left, also crashes of older versions. Checks only the first eight numbers:
    /// more crashes in a row are rare.
    private static func removeLeftovers(_ parent: Int32, of final: String) {
        for name in (1...8).flatMap({ [Self.name(final, $0), Self.name(final, $0, isHidden: false)] }) {
            let old = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard old >= 0 else { continue }
            if flock(old, LOCK_EX | LOCK_NB) == 0 {
                // An empty directory was left before the mark was created.
                if isThere(old, mark) { remove(parent, name, old) } else { _ = unlinkat(parent, name, AT_REMOVEDIR) }
            }
            Glibc.close(old)
        }
    }

    /// Deletes the content first and the mark last, so that after a kill the next process still finds the mark.
    private static func remove(_ parent: Int32, _ name: String, _ own: Int32) {
        Folder.remove(own, content)
        Folder.remove(parent, name)
    }
}

/// Operations on directories that are identified by descriptors.
enum Folder {
    /// A time that a file system stores, in seconds since 1970 and nanoseconds.
    struct Time: Equatable {
        let seconds: Int
        let nanoseconds: Int

        /// The time of the last change of a file's content, name or mode.
        init(ofChange status: stat) { (seconds, nanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec) }

        init(seconds: Int, nanoseconds: Int) { (self.seconds, self.nanoseconds) = (seconds, nanoseconds) }

        static func > (left: Time, right: Time) -> Bool {
            (left.seconds, left.nanoseconds) > (right.seconds, right.nanoseconds)
        }
    }

    /// Deletes a directory and its contents, without following links, and without other file systems that are mounted
    /// in it. Entries that cannot be deleted stay.
    ///
    /// - Parameter limit: files that were changed after this time stay, with their directories; `nil`: none.
    /// - Returns: `false` if an entry could not be deleted.
    @discardableResult
    static func remove(_ parent: Int32, _ name: String, changedUntil limit: Time? = nil) -> Bool {
        var linked: Set<ino_t> = []
        return remove(parent, name, limit, &linked)
    }

    /// `linked` collects the deleted files with further names (hard links), whose time of change is now.
    private static func remove(_ parent: Int32, _ name: String, _ limit: Time?, _ linked: inout Set<ino_t>) -> Bool {
        if towline_is_mount_point(parent, name) == 1 { return limit != nil }
        let own = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard own >= 0 else { return false }
        // Reading a directory while entries are deleted may skip names. Repeats until a round deletes no entry.
        var round = empty(own, limit, &linked)
        while round.hasRemoved { round = empty(own, limit, &linked) }
        Glibc.close(own)
        return unlinkat(parent, name, AT_REMOVEDIR) == 0 || limit != nil && !round.hasFailed && errno == ENOTEMPTY
    }

    private static func empty(
        _ folder: Int32, _ limit: Time?, _ linked: inout Set<ino_t>
    ) -> (hasRemoved: Bool, hasFailed: Bool) {
        let own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard own >= 0 else { return (false, true) }
        guard let stream = fdopendir(own) else {
            Glibc.close(own)
            return (false, true)
        }
        defer { closedir(stream) }
        var (hasRemoved, hasFailed) = (false, false)
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            var status = stat()
            guard name != ".", name != "..", fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            let isDeleted: Bool
            if status.st_mode & S_IFMT == S_IFDIR {
                isDeleted = remove(folder, name, limit, &linked)
            } else {
                if let limit, Time(ofChange: status) > limit, !linked.contains(status.st_ino) { continue }
                isDeleted = unlinkat(folder, name, 0) == 0
                if isDeleted, status.st_nlink > 1 { linked.insert(status.st_ino) }
            }
            if !isDeleted { hasFailed = true }
            if fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 { hasRemoved = true }
        }
        return (hasRemoved, hasFailed)
    }
}
