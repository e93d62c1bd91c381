import Glibc
import TowlineDisk
import TowlineEngine

extension GetPlan {
    /// Limits this process to changing files in the directories of the downloads, and to starting no programs. Must be
    /// called while the process has one thread.
    ///
    /// Lists that may set every option may name any directory. In this case, the process is not limited.
    func confine() {
        guard listPaths.isEmpty || !trustsLists else { return }
        var directories = listPaths.isEmpty ? [] : [settings.directory]
        for url in urls {
            switch try? settings.options(for: url).target {
            case .file(let path, _), .stream(.path(let path)): directories.append(path)
            case .stream(.descriptor), nil: break
            }
        }
        // The file for TLS keys, if the user asks for one to debug connections (SSL_CTX_set_keylog_callback(3)).
        directories += Environment.variables(["SSLKEYLOGFILE"]).values
        Confinement.limitChanges(to: directories, runsPrograms: false)
    }

    /// Applies the limits of `tow get` to this process, which must have one thread and end soon. Returns a description
    /// of the limits that this kernel enforces, for `tow --version -v`.
    static func testLimits() -> String {
        let consequence = "so tow get is not limited to the directories of the downloads"
        guard let version = Confinement.version else { return "this kernel does not support Landlock, \(consequence)" }
        guard Confinement.limitChanges(to: [], runsPrograms: false) else {
            return "this system does not allow Landlock \(version), \(consequence)"
        }
        return "tow get changes files only in the directories of the downloads, and starts no programs "
            + "(Landlock \(version))"
    }
}
