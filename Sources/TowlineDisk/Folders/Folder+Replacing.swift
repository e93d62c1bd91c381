import Glibc
internal import TowlineCore

/// The check whether a file that has the final name of a download may stay there, be replaced, or must make the
/// download fail.
extension Folder {
    /// Throws an error if a directory, FIFO, socket or device has the name `name`, or a symbolic link to a FIFO, socket
    /// or device. If the download replaces the file, also throws for any other symbolic link.
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
