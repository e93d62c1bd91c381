import FoundationEssentials
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
        var places = ServicePlaces(environment: values, home: home, state: state, isForeign: isForeign)
        if let recorded = places.recordedSocket { places.socket = recorded }
        return places
    }

    /// The socket on which the `towd` of the state directory listens. The default socket depends on `XDG_RUNTIME_DIR`,
    /// which differs between a login session and cron, sudo or a container. `nil` if there is no record, or its socket
    /// does not exist any more.
    private var recordedSocket: String? {
        var status = stat()
        guard let text = try? String(contentsOfFile: socketRecord, encoding: .utf8),
            let path = text.split(separator: "\n").first.map({ String($0) }), path.hasPrefix("/"),
            stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK
        else { return nil }
        return path
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
