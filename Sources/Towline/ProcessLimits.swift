package import Foundation
import TowlineArchive
import TowlineDisk
import TowlineRegistry

#if Library
    import TowlineCurl
#endif

/// Security limits that the kernel enforces on a process that only downloads, such as the service `towd`.
package enum ProcessLimits {
    /// Limits this process to changing files below the directories of the two parameters and below the directories that
    /// the list of downloads already uses. Reading is not limited. Creates missing directories.
    ///
    /// Must be called while the process has one thread. Limits nothing if the Linux kernel does not support Landlock.
    ///
    /// - Parameters:
    ///   - shared: directories that other users may read.
    ///   - private: directories that only this user may read. The first one is the state directory.
    /// - Returns: `true` if the limits are in place.
    @discardableResult
    package static func confine(to shared: [URL], private: [URL]) -> Bool {
        // Errors are reported later, when the directory is used.
        for directory in shared { try? create(directory, 0o777) }
        for directory in `private` { try? create(directory, 0o700) }
        let known = `private`.first.map { SQLiteRegistry.knownDirectories(inState: $0.path) } ?? []
        return Confinement.limitChanges(to: (shared + `private`).map(\.path) + known, runsPrograms: true)
    }

    private static func create(_ directory: URL, _ mode: Int) throws {
        let manager = FileManager.default
        guard !manager.fileExists(atPath: directory.path) else { return }
        let parent = directory.deletingLastPathComponent()
        try manager.createDirectory(at: parent, withIntermediateDirectories: true)
        guard mkdir(directory.path, mode_t(mode)) == 0 || errno == EEXIST else { throw CocoaError(.fileWriteUnknown) }
    }

    /// Applies the security limits of the service `towd` to this process, which must have one thread and end soon.
    /// Returns a description of the limits that this kernel enforces, one a line, for `towd --version -v`.
    ///
    /// - Parameter protectsMemory: `true` if the kernel writes no core file of this process.
    package static func test(protectsMemory: Bool) -> String {
        // Before Landlock, which would limit the child too.
        let seccomp =
            Unpacker.isConfined
            ? "a process without files and network reads archives (seccomp)"
            : "this kernel does not limit the system calls of the process that reads archives (no seccomp)"
        let memory = protectsMemory ? "no core dumps" : "this system does not prevent core dumps of towd"
        return "\(landlock)\n\(seccomp)\n\(memory)"
    }

    private static var landlock: String {
        guard let version = Confinement.version else {
            return "this kernel does not support Landlock, so towd is not limited to its directories"
        }
        guard Confinement.limitChanges(to: [], runsPrograms: true) else {
            return "this system does not allow Landlock \(version), so towd is not limited to its directories"
        }
        return "towd changes files only in its own directories and those of downloads (Landlock \(version))"
    }

    /// The names and versions of the system libraries in use, in the format of `curl --version`.
    package static var libraries: String {
        var versions = [SQLiteRegistry.libraryVersion, Unpacker.libraryVersion]
        #if Library
            versions.insert(CurlLibrary.versions, at: 0)
        #endif
        return versions.joined(separator: " ")
    }
}
