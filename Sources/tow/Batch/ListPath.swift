import Glibc
import TowlineCore

/// Checks the paths that a list of URLs contains. A list may come from somebody else, so its paths stay below the
/// directory of `-d`, and its names are made as safe as names from a server.
enum ListPath {
    /// Returns the path with a safe last component.
    ///
    /// - Throws: `unusableOption` if the path is absolute, or if a directory in the path is hidden or leads upwards.
    static func file(_ path: String) throws(TowlineError) -> String {
        let slash = path.utf8.lastIndex(of: 0x2F)
        let name = slash.map { path[path.utf8.index(after: $0)...] } ?? path[...]
        guard let safe = SafeFileName.make(String(name)) else { throw refused(path, "it names no file") }
        guard let slash else { return safe }
        let directory = try directory(String(path[..<slash]))
        return directory == "." ? safe : directory + "/" + safe
    }

    /// Returns the path of a directory below the directory of `-d`.
    ///
    /// - Throws: `unusableOption`, as `file`.
    static func directory(_ path: String) throws(TowlineError) -> String {
        // Check the bytes: a dot or a slash followed by a combining character is another `Character`.
        guard let first = path.utf8.first, first != 0x2F else { throw refused(path, "it is absolute") }
        let components = path.utf8.split(separator: 0x2F).filter { !$0.elementsEqual(".".utf8) }
        for component in components {
            if component.elementsEqual("..".utf8) { throw refused(path, "it contains '..'") }
            if component.first == 0x2E { throw refused(path, "it contains a hidden directory") }
        }
        return components.isEmpty ? "." : components.map { String($0) ?? "" }.joined(separator: "/")
    }

    /// Checks that a directory is below `root` once symbolic links are resolved.
    ///
    /// - Throws: `unusableOption` if a link leads out of `root`. A directory that does not exist passes.
    static func check(_ directory: String, isBelow root: String) throws(TowlineError) {
        guard let inner = resolved(directory), let outer = resolved(root) else { return }
        guard inner == outer || inner.hasPrefix(outer == "/" ? outer : outer + "/") else {
            throw refused(directory, "a symbolic link leads out of that directory")
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let bytes = ByteText.withCString(path, { realpath($0, nil) }) else { return nil }
        defer { free(bytes) }
        return ByteText.decode(Array(UnsafeRawBufferPointer(start: bytes, count: strlen(bytes))))
    }

    private static func refused(_ path: String, _ reason: String) -> TowlineError {
        TowlineError(
            .unusableOption,
            "'\(TerminalSafeText.make(path, width: 60))' is not used: a path in a list must stay below the directory of -d, "
                + "and \(reason)")
    }
}
