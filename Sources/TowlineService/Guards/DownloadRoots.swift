internal import Foundation
internal import Towline

/// The downloads directories. Resolves the directory in a client's request to a directory inside them.
struct DownloadRoots: Sendable {
    /// The directories with all symbolic links resolved.
    let paths: [String]
    /// The directory of downloads that specify no directory.
    var standard: String { paths[0] }

    /// Creates missing directories.
    ///
    /// - Throws: `unusableDestination` if a directory cannot be created or opened.
    init(_ directories: [URL]) throws(TowlineError) {
        var roots: [String] = []
        for directory in directories {
            do {
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            } catch {
                throw TowlineError(
                    .unusableDestination,
                    """
                    cannot create the downloads directory \(TerminalSafeText.make(directory.path)). Check the path and \
                    its permissions, or choose another directory with --downloads
                    """)
            }
            guard let path = Self.real(directory.path) else {
                throw TowlineError(
                    .unusableDestination,
                    """
                    cannot open the downloads directory \(TerminalSafeText.make(directory.path)). Check the path and \
                    its permissions, or choose another directory with --downloads
                    """)
            }
            roots.append(path)
        }
        guard !roots.isEmpty else {
            throw TowlineError(
                .unusableDestination, "no downloads directory is configured. Set a directory with --downloads")
        }
        paths = roots
    }

    /// Returns a directory inside a root, and creates it if it does not exist and `creating` is `true`. Relative paths
    /// are below the first root.
    ///
    /// A path that leads out of the roots after all links are resolved is refused. Hidden directories are refused too,
    /// because they contain programs to run and lists of trusted keys.
    ///
    /// - Throws: `unusableDestination`.
    func directory(_ text: String?, creating: Bool = true) throws(TowlineError) -> String {
        guard let text, !text.isEmpty else { return standard }
        guard !text.utf8.contains(0), text.utf8.count < 4096 else { throw Self.refusal(text) }
        // Byte by byte: a combining character after a slash or a dot makes another Character.
        let path = text.utf8.first == 0x2F ? text : standard + "/" + text
        let components = path.utf8.split(separator: 0x2F).map { Substring($0) }.filter { $0 != "." }
        guard !components.contains("..") else { throw Self.refusal(text) }
        var existing = components
        var missing: [Substring] = []
        var found = Self.real("/" + existing.joined(separator: "/"))
        while found == nil, let last = existing.popLast() {
            missing.insert(last, at: 0)
            found = Self.real("/" + existing.joined(separator: "/"))
        }
        guard let found, let root = paths.first(where: { Self.isInside(found, $0) }) else { throw Self.refusal(text) }
        let inside = found.dropFirst(root.count).split(separator: "/") + missing
        guard !inside.contains(where: { $0.utf8.first == 0x2E }) else { throw Self.refusal(text) }
        guard creating else { return ([found == "/" ? "" : found] + missing.map(String.init)).joined(separator: "/") }
        return try make(missing, in: found, root, text)
    }

    /// Returns true if a download's directory is still inside a root after all links are resolved.
    func hold(_ directory: String) -> Bool {
        guard let real = Self.real(directory) else { return false }
        return paths.contains { Self.isInside(real, $0) }
    }

    /// Checks a file name from a client.
    ///
    /// - Throws: `unusableDestination` if the name is not safe without changes.
    func name(_ text: String) throws(TowlineError) -> String {
        guard SafeFileName.make(text) == text else {
            throw TowlineError(
                .unusableDestination,
                """
                invalid file name '\(TerminalSafeText.make(text))'. A name must be one path component of at most \
                \(SafeFileName.maximumByteCount) bytes, without control characters, without a leading dot and without \
                \\ < > : " | ? *
                """)
        }
        return text
    }

    private func make(_ missing: [Substring], in parent: String, _ root: String, _ text: String)
        throws(TowlineError) -> String
    {
        var path = parent
        for component in missing {
            path += "/" + component
            guard mkdir(path, 0o777) == 0 || errno == EEXIST else {
                throw TowlineError(
                    .unusableDestination,
                    """
                    cannot create the directory \(TerminalSafeText.make(path)) for the download: \
                    \(String(cString: strerror(errno))). Choose another directory or change the permissions
                    """)
            }
        }
        // Check again: another process may have created a link in the meantime.
        guard let real = Self.real(path), Self.isInside(real, root), Self.isDirectory(real) else {
            throw Self.refusal(text)
        }
        return real
    }

    private static func isInside(_ path: String, _ root: String) -> Bool {
        path == root || path.hasPrefix(root == "/" ? "/" : root + "/")
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private static func real(_ path: String) -> String? {
        guard let result = realpath(path, nil) else { return nil }
        defer { free(result) }
        return String(cString: result)
    }

    private static func refusal(_ text: String) -> TowlineError {
        TowlineError(
            .unusableDestination,
            """
            the directory '\(TerminalSafeText.make(text))' is not allowed: it must be inside the downloads directory \
            of towd, and no part of its path may be '..' or begin with a dot
            """)
    }
}
