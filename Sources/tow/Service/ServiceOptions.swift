import ArgumentParser
import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

struct ServiceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            State directory of towd, with the list of downloads. (default: $XDG_STATE_HOME/towline or \
            ~/.local/state/towline)
            """,
            valueName: "dir"),
        completion: .directory)
    var state: String?

    @Option(
        help: ArgumentHelp(
            "Socket on which towd listens. (default: $XDG_RUNTIME_DIR/towline/towd.sock)", valueName: "path"),
        completion: .file())
    var socket: String?

    func validate() throws {
        try Self.check("--state", [state])
        try Self.check("--socket", [socket])
    }

    /// Throws `ValidationError` if a path is empty: it would stand for the working directory.
    static func check(_ option: String, _ paths: [String?]) throws {
        if paths.contains("") { throw ValidationError("The path of \(option) is empty. Give a path.") }
    }

    var places: ServicePlaces {
        var places = ServicePlaces.ofUser(state: state.map { Self.absolute($0) })
        if let socket { places.socket = Self.absolute(socket) }
        return places
    }

    /// A client for the service. If `towd` does not respond for some seconds, the client says so on standard error and
    /// continues to wait: the machine may be busy, or the process was stopped (SIGSTOP).
    var client: ServiceClient {
        let state = places.stateDirectory
        return ServiceClient(socket: places.socket) {
            let process = Installation.owner(of: state).map { " (process \($0))" } ?? ""
            var errors = OutputDescriptor(STDERR_FILENO)
            errors.write(
                """
                tow: towd\(process) does not respond. Waiting for up to a minute. 'tow service stop' ends a towd that \
                hangs.

                """)
        }
    }

    /// A starter for the service, used if the service is not running.
    var starter: ServiceStarter {
        var arguments: [String] = []
        if state != nil { arguments += ["--state", places.stateDirectory] }
        if socket != nil { arguments += ["--socket", places.socket] }
        return ServiceStarter(places: places, arguments: arguments)
    }

    /// Calls `body` with a client. If no process listens on the socket, throws an error with the next step.
    func ask<Value>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        do {
            return try await body(client)
        } catch is ServiceClient.NotRunning {
            throw TowlineError(
                .commandFailed,
                """
                towd is not running (no process is listening on \(TerminalSafeText.make(places.socket))). \
                'tow add URL' starts it
                """)
        }
    }

    /// Calls `body` with a client. If no process listens on the socket, starts the service, says so on standard error,
    /// and calls `body` again.
    func askStarting<Value>(_ body: (ServiceClient) async throws -> Value) async throws -> Value {
        do {
            return try await body(client)
        } catch is ServiceClient.NotRunning {
            try await starter.start { client }
            let value = try await body(client)
            var errors = OutputDescriptor(STDERR_FILENO)
            errors.write("tow: started towd in the background. \(try await pageNotice)\n")
            return value
        }
    }

    /// The addresses of the web page; empty if towd reports no address within a second. `towd` serves the page shortly
    /// after the socket.
    var pages: [String] {
        get async throws {
            for _ in 0..<20 {
                if let pages = try? await client.settings.pages, !pages.isEmpty { return pages }
                try await Task.sleep(for: .milliseconds(50))
            }
            return []
        }
    }

    /// A sentence that says where the web page is, and how to sign in.
    var pageNotice: String {
        get async throws {
            let pages = try await pages.map { TerminalSafeText.make($0) }
            guard !pages.isEmpty else { return "It serves no web page." }
            return "Its web page is \(pages.joined(separator: ", ")); 'tow page' signs a browser in."
        }
    }

    /// Returns the absolute path for a path that is relative to the working directory.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard getcwd(&buffer, buffer.count) != nil else { return path }
        let here = ByteText.decode(buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
        let components = path.split(separator: "/").filter { $0 != "." }
        return ([here == "/" ? "" : here] + components.map(String.init)).joined(separator: "/")
    }
}
