import Glibc
internal import TowlineCore

/// The check whether a download may replace or follow the file that has its final name.
extension Folder {
    /// Throws an error if a download cannot replace or may not follow the file `name`.
    ///
    /// - Parameter isReplaced: `true` if the download replaces an existing file.
    func checkReplaceable(_ name: String, isReplaced: Bool) throws(TowlineError) {
        switch try status(of: name)?.kind {
        case .other: throw .unusable(path(of: name))
        case .directory: throw .opening(path(of: name), EISDIR)
        case .link where Self.leadsToDevice(path(of: name)):
            throw .unusable(path(of: name))
        case .link where isReplaced: throw .link(path(of: name))
        default: break
        }
    }

    /// Returns whether a symbolic link leads to a device, pipe or socket that other processes share, such as
    /// `/dev/stdout`.
    private static func leadsToDevice(_ link: String) -> Bool {
        var found = stat()
        return ByteText.withCString(link) { stat($0, &found) } == 0
            && ![S_IFREG, S_IFDIR].contains(found.st_mode & S_IFMT)
    }
}
