import CTowline
import Glibc
internal import TowlineCore

/// Limits the directories in which this process can change files, enforced by the kernel (landlock(7)): a second line
/// of defence, in case bytes of a server exploit a bug in a library.
package enum Confinement {
    /// The version of Landlock (the Linux sandbox that limits a process's access to files) that the kernel supports;
    /// `nil` without support.
    package static var version: Int? {
        let version = Int(towline_landlock_version())
        return version > 0 ? version : nil
    }

    /// Allows this process to change files only below `directories`, until it ends. Does not limit reading.
    ///
    /// Must be called while the process has one thread. Skips directories that do not exist. Does nothing if the kernel
    /// does not support Landlock.
    ///
    /// - Parameter runsPrograms: `true` if the process may start programs.
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
