internal import Foundation
internal import Towline

/// The directories that downloads may go to, and how a client's directory becomes one inside them.
struct DownloadRoots: Sendable {
    /// As they are after all links are followed.
    private let roots: [String]
    /// Where a download goes that names no directory.
    var standard: String { roots[0] }

    /// Makes those that are not there.
    init(_ directories: [URL]) throws(TowlineError) {
        var roots: [String] = []
        for directory in directories {
            do {
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            } catch {
                throw TowlineError(
                    .unusableDestination, "\(TerminalSafeText.make(directory.path)) cannot be made")
            }
            guard let path = Self.real(directory.path) else {
                throw TowlineError(.unusableDestination, "\(TerminalSafeText.make(directory.path)) cannot be read")
            }
            roots.append(path)
        }
        guard !roots.isEmpty else { throw TowlineError(.unusableDestination, "there is no downloads directory") }
        self.roots = roots
    }

    /// A directory inside a root, made if it is not there; relative ones are below the first root.
    ///
    /// Where a link leads out of the roots, it is refused: what counts is where the path ends up. Hidden directories are
    /// refused too, since programs keep there what they run and whom they trust.
    func directory(_ text: String?) throws(TowlineError) -> String {
        guard let text, !text.isEmpty else { return standard }
        guard !text.utf8.contains(0), text.utf8.count < 4096 else { throw Self.refusal(text) }
        let path = text.hasPrefix("/") ? text : standard + "/" + text
        let components = path.split(separator: "/")
        guard !components.contains(".."), !components.contains(".") else { throw Self.refusal(text) }
        var existing = components
        var missing: [Substring] = []
        var found = Self.real("/" + existing.joined(separator: "/"))
        while found == nil, let last = existing.popLast() {
            missing.insert(last, at: 0)
            found = Self.real("/" + existing.joined(separator: "/"))
        }
        guard let found, let root = roots.first(where: { Self.isInside(found, $0) }) else { throw Self.refusal(text) }
        let inside = found.dropFirst(root.count).split(separator: "/") + missing
        guard !inside.contains(where: { $0.hasPrefix(".") }) else { throw Self.refusal(text) }
        return try make(missing, in: found, root, text)
    }

    /// Whether a download's directory is inside a root still, after all links are followed.
    func hold(_ directory: String) -> Bool {
        guard let real = Self.real(directory) else { return false }
        return roots.contains { Self.isInside(real, $0) }
    }

    /// A name that the client gave. What would have to be changed to be safe is refused.
    func name(_ text: String) throws(TowlineError) -> String {
        guard SafeFileName.make(text) == text else {
            throw TowlineError(.unusableDestination, "\(TerminalSafeText.make(text)) cannot be a file's name")
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
                    "\(TerminalSafeText.make(path)) cannot be made: \(String(cString: strerror(errno)))")
            }
        }
        // Once more: somebody may have put a link there meanwhile.
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
            .unusableDestination, "\(TerminalSafeText.make(text)) is not inside the downloads directory of towd")
    }
}
