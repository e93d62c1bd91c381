/// Where the service is, unless it is told otherwise: the same for `towd` and for `tow`, which looks for it.
package struct ServicePlaces: Hashable, Sendable {
    /// The list, the token and the log.
    package var stateDirectory: String
    /// The Unix socket.
    package var socket: String
    /// Where downloads go.
    package var downloadsDirectory: String
    /// The configuration file, which need not be there.
    package var configurationFile: String

    /// By the XDG base directory specification: `$XDG_STATE_HOME/towline`, `$XDG_RUNTIME_DIR/towline/towd.sock`. A
    /// state directory that was named has its socket inside, so that two services do not meet.
    ///
    /// - Parameter state: the state directory that was named, as an absolute path.
    package init(environment: [String: String], home: String, state: String? = nil) {
        func directory(_ variable: String) -> String? {
            // Relative ones are to be ignored, says the specification.
            environment[variable].flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        stateDirectory = state ?? (directory("XDG_STATE_HOME") ?? home + "/.local/state") + "/towline"
        let runtime = state == nil ? directory("XDG_RUNTIME_DIR").map { $0 + "/towline" } : nil
        socket = (runtime ?? stateDirectory) + "/towd.sock"
        downloadsDirectory = directory("XDG_DOWNLOAD_DIR") ?? home + "/Downloads"
        configurationFile = (directory("XDG_CONFIG_HOME") ?? home + "/.config") + "/towline/towd.yaml"
    }

    /// What `towd` writes to when nobody looks.
    package var log: String { stateDirectory + "/towd.log" }
}
