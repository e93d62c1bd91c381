/// The default paths of the service, shared by `towd` and `tow`.
package struct ServicePlaces: Hashable, Sendable {
    /// Directory of the list of downloads, the access token and the log.
    package var stateDirectory: String
    /// Path of the Unix socket.
    package var socket: String
    /// Default directory of downloads.
    package var downloadsDirectory: String
    /// Path of the configuration file, which may not exist.
    package var configurationFile: String

    /// Creates the paths by the XDG Base Directory Specification: `$XDG_STATE_HOME/towline`,
    /// `$XDG_RUNTIME_DIR/towline/towd.sock`. A custom state directory contains its own socket, so that two services do
    /// not collide.
    ///
    /// - Parameters:
    ///   - state: a custom state directory, as an absolute path.
    ///   - isForeign: returns whether a directory belongs to another user. After su(1), the variables may still name
    ///     directories of the previous user, which are ignored.
    package init(
        environment: [String: String], home: String, state: String? = nil, isForeign: (String) -> Bool = { _ in false }
    ) {
        func directory(_ variable: String) -> String? {
            // The specification requires relative paths to be ignored.
            environment[variable].flatMap { $0.hasPrefix("/") && !isForeign($0) ? $0 : nil }
        }
        stateDirectory = state ?? (directory("XDG_STATE_HOME") ?? home + "/.local/state") + "/towline"
        let runtime = state == nil ? directory("XDG_RUNTIME_DIR") : nil
        socket = (runtime.map { $0 + "/towline" } ?? stateDirectory) + "/towd.sock"
        downloadsDirectory = directory("XDG_DOWNLOAD_DIR") ?? home + "/Downloads"
        configurationFile = (directory("XDG_CONFIG_HOME") ?? home + "/.config") + "/towline/towd.yaml"
    }

    /// Path of a file with the path of the socket on which the `towd` of the state directory listens. The file exists
    /// while that `towd` runs; after a crash, it may be outdated.
    package var socketRecord: String { Self.socketRecord(in: stateDirectory) }

    /// Returns `socketRecord` of a state directory.
    package static func socketRecord(in stateDirectory: String) -> String { stateDirectory + "/socket-path" }

    /// Path of the log that `towd` writes when it runs in the background.
    package var log: String { stateDirectory + "/towd.log" }
}
