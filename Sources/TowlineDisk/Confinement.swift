import CTowline
import Glibc
internal import TowlineCore

/// The part of the file system that this process can change, as the kernel enforces it (landlock(7)): a second line of
/// defence, for when a server's bytes make a library do what they want.
package enum Confinement {
    /// The version of Landlock that the kernel supports; `nil` without it.
    package static var version: Int? {
        let version = Int(towline_landlock_version())
        return version > 0 ? version : nil
    }

    /// Limits this process to changing files below `directories`, until it ends. Reading is not limited.
    ///
    /// Must be called while the process has one thread. Directories that do not exist are left out. Without support of
    /// the kernel nothing happens.
    ///
    /// - Parameter runsPrograms: the process may start programs.
    /// - Returns: `true` if the limits are in place.
    @discardableResult
    package static func limitChanges(to directories: [String], runsPrograms: Bool) -> Bool {
        var words: [UnsafeMutablePointer<CChar>?] = directories.map { directory in
            ByteText.withCString(directory.isEmpty ? "." : directory) { strdup($0) }
        }
        words.append(nil)
        defer { words.forEach { free($0) } }
        return towline_confine(words, runsPrograms ? 1 : 0) > 0
    }
}
