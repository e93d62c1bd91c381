import Glibc
internal import TowlineCore

/// The directories that contain all downloads of a service. A directory inside one of them is opened beneath it at each
/// use: a symbolic link that appears later cannot lead a download to another place.
package struct StorageRoots: Sendable {
    /// The absolute paths of the directories, without a slash at the end.
    private let paths: [String]

    /// Creates the roots from absolute paths. Without paths, every directory is opened as its path leads.
    package init(_ paths: [String] = []) { self.paths = paths.map { $0 == "/" ? "" : $0 } }

    /// `true` if no root is known.
    var isEmpty: Bool { paths.isEmpty }

    /// Opens a directory for `openat`. Directories outside all roots are opened as their paths lead.
    ///
    /// - Parameter flags: the flags for the directory itself.
    /// - Returns: the number of the descriptor, or a negative error number; `-EXDEV` if a link leads out of the root.
    func open(_ path: String, _ flags: Int32, _ syscall: any Syscall) -> Int32 {
        guard let root = root(of: path) else { return syscall.openat(AT_FDCWD, path.isEmpty ? "." : path, flags, 0) }
        let code = walk(path, beneath: root, flags, syscall)
        guard code == -ELOOP || code == -ENOTDIR else { return code }
        // A link inside the root that stays inside, such as that of a directory that the user moved, is followed.
        guard let real = Self.realPath(path) else { return code }
        guard real != path else { return code }
        guard Self.isInside(real, root) else { return -EXDEV }
        return walk(real, beneath: root, flags, syscall)
    }

    private func root(of path: String) -> String? { paths.first { Self.isInside(path, $0) } }

    private static func isInside(_ path: String, _ root: String) -> Bool { path == root || path.hasPrefix(root + "/") }

    /// Opens each component of the path below the root without following links. The user may have made links above the
    /// root, which are followed.
    private func walk(_ path: String, beneath root: String, _ flags: Int32, _ syscall: any Syscall) -> Int32 {
        let components = path.dropFirst(root.count).split(separator: "/").map(String.init)
        guard !components.contains("..") else { return -EXDEV }
        let pathOnly = Folder.pathOnly | O_DIRECTORY | O_CLOEXEC
        var number = syscall.openat(
            AT_FDCWD, root.isEmpty ? "/" : root, components.isEmpty ? flags : pathOnly, 0)
        for (index, component) in components.enumerated() where number >= 0 {
            let isLast = index == components.count - 1
            let next = syscall.openat(number, component, (isLast ? flags : pathOnly) | O_NOFOLLOW, 0)
            _ = syscall.close(number)
            number = next
        }
        return number
    }

    private static func realPath(_ path: String) -> String? {
        guard let result = ByteText.withCString(path, { realpath($0, nil) }) else { return nil }
        defer { free(result) }
        return String(cString: result)
    }
}
