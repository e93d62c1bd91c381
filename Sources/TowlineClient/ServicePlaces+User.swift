import Glibc
package import TowlineWire

extension ServicePlaces {
    /// The paths of the service of this user, as the environment of this process gives them.
    ///
    /// - Parameter state: a custom state directory, as an absolute path.
    package static func ofUser(state: String? = nil) -> ServicePlaces {
        var values: [String: String] = [:]
        for name in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DOWNLOAD_DIR", "XDG_CONFIG_HOME"] {
            values[name] = getenv(name).map { String(cString: $0) }
        }
        return ServicePlaces(environment: values, home: home, state: state, isForeign: isForeign)
    }

    /// The user's home directory.
    package static var home: String {
        if let home = getenv("HOME"), home.pointee != 0 { return String(cString: home) }
        guard let entry = getpwuid(geteuid()), let directory = entry.pointee.pw_dir else { return "/" }
        return String(cString: directory)
    }

    /// Returns whether a directory exists and belongs to another user.
    private static func isForeign(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_uid != geteuid()
    }
}
