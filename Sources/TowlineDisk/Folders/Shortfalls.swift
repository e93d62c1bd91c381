import Glibc
import Synchronization

/// Records system calls that a file system does not support although a guarantee depends on them
/// (`docs/crash-safety.md`, "File systems that lack a call"). For each directory and each missing ability, the user
/// gets one notice.
final class Shortfalls: Sendable {
    /// The ability that a file system lacks: to lock files, set modification times, sync a file, sync a directory, or
    /// remove files.
    enum Kind: Hashable {
        case lock, time, sync, directory, removal
    }

    /// The abilities (such as to lock files) that file systems were found to lack, and the notices about them for the
    /// user, by directory.
    private struct Findings {
        var known: [String: Set<Kind>] = [:]
        var notices: [String: [String]] = [:]
    }

    private let state = Mutex(Findings())

    /// Records that a call failed in a directory because the file system does not support it, and adds a notice for the
    /// user the first time.
    func note(_ kind: Kind, in directory: String) {
        state.withLock { state in
            guard state.known[directory, default: []].insert(kind).inserted else { return }
            state.notices[directory, default: []].append(Self.text(kind, directory))
        }
    }

    /// Returns the notices for the user about abilities that the file system of a directory lacks, except those
    /// returned before.
    func takeNotices(of directory: String) -> [String] {
        state.withLock { $0.notices.isEmpty ? [] : $0.notices.removeValue(forKey: directory) ?? [] }
    }

    private static func text(_ kind: Kind, _ directory: String) -> String {
        switch kind {
        case .lock:
            "the file system of \(directory) cannot lock files, so a second process is not kept from the same file. "
                + "Do not run two downloads to one file name"
        case .time:
            "the file system of \(directory) cannot set modification times. The file has the time of its download"
        case .sync:
            "the file system of \(directory) cannot sync single files, so Towline syncs all of it. If the file system "
                + "ignores this, a power failure may damage the file"
        case .removal:
            "files in \(directory) cannot be removed, so the journal file of the finished download is left. "
                + "Remove NAME.tow-journal when the directory allows it"
        case .directory:
            "the directory \(directory) cannot be read, so it cannot be synced alone, and Towline syncs all disks. "
                + "After a power failure, check that the file is there"
        }
    }
}

extension Int32 {
    /// Returns whether this is the negated `errno` of a call that the file system or a sandbox does not support.
    var isLacking: Bool { [-ENOSYS, -EOPNOTSUPP, -EINVAL].contains(self) }

    /// Returns whether `isLacking` is `true` or this is -EPERM or -EACCES, the errors of file systems without owners
    /// for some calls that they do not support.
    var isLackingOrForbidden: Bool { isLacking || [-EPERM, -EACCES].contains(self) }
}
