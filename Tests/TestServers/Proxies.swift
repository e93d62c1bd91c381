import Foundation

/// A proxy server on the loopback address. The server ends when the object is released.
package final class ProxyProgram: Sendable {
    package let port: UInt16
    private let folder: TemporaryFolder
    private let program: ServerProgram

    private init(
        _ program: String, _ folder: TemporaryFolder, port: UInt16, configuration: String,
        arguments: (_ configuration: String) -> [String]
    ) async throws {
        self.folder = folder
        self.port = port
        let file = try folder.write("proxy.conf", configuration)
        self.program = try await ServerProgram(
            program, arguments(file), port: port, log: folder.path + "/log")
    }

    /// Starts an HTTP proxy that also supports tunnels.
    ///
    /// - Parameter credentials: the required name and password; `nil` for none.
    package static func tinyproxy(credentials: (String, String)? = nil) async throws -> ProxyProgram {
        let folder = try TemporaryFolder()
        let port = Loopback.freePort()
        let guarded = credentials.map { "BasicAuth \($0.0) \($0.1)\n" } ?? ""
        return try await ProxyProgram(
            Programs.tinyproxy, folder, port: port,
            configuration: """
                Port \(port)
                Listen 127.0.0.1
                Timeout 60
                MaxClients 20
                Allow 127.0.0.1
                LogFile "\(folder.path)/access.log"
                LogLevel Connect
                \(guarded)
                """,
            arguments: { ["-d", "-c", $0] })
    }

    /// Starts an HTTP proxy that also supports tunnels and does not cache responses.
    package static func squid() async throws -> ProxyProgram {
        let folder = try TemporaryFolder()
        let port = Loopback.freePort()
        // Squid drops root privileges and must still be able to write here.
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        return try await ProxyProgram(
            Programs.squid, folder, port: port,
            configuration: """
                http_port 127.0.0.1:\(port)
                http_access allow all
                cache deny all
                cache_log \(folder.path)/cache.log
                access_log stdio:\(folder.path)/access.log
                pid_filename none
                coredump_dir \(folder.path)
                netdb_filename none
                pinger_enable off
                shutdown_lifetime 0
                """,
            arguments: { ["-N", "-f", $0] })
    }

    /// Starts a SOCKS5 proxy.
    ///
    /// - Parameter blocked: a port that the proxy refuses to connect to; `nil` for none.
    package static func danted(blocked: UInt16? = nil) async throws -> ProxyProgram {
        let folder = try TemporaryFolder()
        let port = Loopback.freePort()
        let block = blocked.map { "socks block { from: 0.0.0.0/0 to: 0.0.0.0/0 port = \($0) }\n" } ?? ""
        return try await ProxyProgram(
            Programs.danted, folder, port: port,
            configuration: """
                logoutput: \(folder.path)/access.log
                internal: 127.0.0.1 port = \(port)
                external: 127.0.0.1
                clientmethod: none
                socksmethod: none
                user.privileged: root
                user.unprivileged: nobody
                client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 log: connect }
                \(block)socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 log: connect }
                """,
            arguments: { ["-f", $0, "-p", folder.path + "/pid"] })
    }

    /// The proxy's log of its connections.
    package var log: String { folder.read("access.log") }
}
