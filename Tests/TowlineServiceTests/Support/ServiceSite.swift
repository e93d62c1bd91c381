import FaultServer
import Foundation
import Towline
import TowlineService
import TowlineWire

/// A service in this process, with a server that supplies downloads.
final class ServiceSite: Sendable {
    let server: FaultServer
    let root: URL
    let service: DownloadService
    let configuration: ServiceConfiguration
    let port: Int
    private let running: Task<Void, any Error>

    init(
        _ resources: [String: Resource] = [:], rate: Int64? = nil, root: URL? = nil,
        _ change: (inout ServiceConfiguration) -> Void = { _ in }
    ) async throws {
        var options = ServerOptions()
        options.sharedRate = rate
        server = try await FaultServer.start(resources, options: options)
        let root = root ?? FileManager.default.temporaryDirectory.appendingPathComponent("towd-" + UUID().uuidString)
        self.root = root
        var configuration = ServiceConfiguration(
            stateDirectory: root.appendingPathComponent("state"),
            downloadsDirectories: [root.appendingPathComponent("downloads")],
            socket: root.appendingPathComponent("run/towd.sock"), addresses: [ListenAddress(host: "127.0.0.1", port: 0)]
        )
        configuration.eventInterval = 0.05
        configuration.networkRetryInterval = 0.2
        change(&configuration)
        self.configuration = configuration
        let service = try await DownloadService.open(configuration)
        self.service = service
        running = Task { try await service.run() }
        var port: Int?
        var listening = 0
        for await endpoint in service.endpoints {
            port = try endpoint.get().port ?? port
            listening += 1
            if listening == 1 + configuration.addresses.count { break }
        }
        self.port = port ?? 0
    }

    deinit { try? FileManager.default.removeItem(at: root) }

    /// Stops the service and the server in order.
    func stop() async throws {
        await service.stop()
        try await running.value
        await server.stop()
    }

    var socket: RawExchange.Place { .socket(root.appendingPathComponent("run/towd.sock").path) }
    var downloads: URL { root.appendingPathComponent("downloads") }

    /// Sends a request over the Unix socket.
    func ask(_ method: String, _ path: String, _ body: [String: Any]? = nil) async throws -> RawExchange.Answer {
        let bytes = try body.map { Array(try JSONSerialization.data(withJSONObject: $0)) } ?? []
        return try await RawExchange.send(
            method, Wire.base + path, to: socket, fields: ["Content-Type": "application/json"], body: bytes)
    }

    /// Sends a request over TCP, without the token unless `fields` contain it.
    func askOverTCP(
        _ method: String, _ path: String, _ fields: [String: String] = [:], body: String = ""
    ) async throws -> RawExchange.Answer {
        let all = ["Content-Type": "application/json"].merging(fields) { $1 }
        return try await RawExchange.send(
            method, Wire.base + path, to: .port(port), fields: all, body: Array(body.utf8))
    }

    /// Signs in over TCP and returns the field `Set-Cookie` of the response.
    func signIn(_ fields: [String: String] = [:]) async throws -> String {
        let body = #"{"token":"\#(service.token.text)"}"#
        let answer = try await askOverTCP("POST", "/session", fields, body: body)
        guard answer.status == 204, let cookie = answer.fields["set-cookie"] else {
            throw Unexpected(status: answer.status, text: String(decoding: answer.body, as: UTF8.self))
        }
        return cookie
    }

    /// Signs in over TCP and returns the cookie as a browser sends it: name and value.
    func cookie(_ fields: [String: String] = [:]) async throws -> String {
        try await String(signIn(fields).prefix { $0 != ";" })
    }

    /// Adds a download and returns its identifier.
    func add(_ path: String, _ options: [String: Any] = [:]) async throws -> String {
        let body = options.merging(["url": server.url(path)]) { old, _ in old }
        let answer = try await ask("POST", "/downloads", body)
        guard answer.status == 201, let list = answer.object["downloads"] as? [[String: Any]],
            let id = list.first?["id"] as? String
        else { throw Unexpected(status: answer.status, text: String(decoding: answer.body, as: UTF8.self)) }
        return id
    }

    struct Unexpected: Error {
        let status: Int
        let text: String
    }

    /// Waits until a download has this state.
    func wait(_ id: String, for state: DownloadState) async throws {
        try await wait(id) { $0.state == state }
    }

    /// Waits until a snapshot of a download fits.
    func wait(_ id: String, until fits: (DownloadSnapshot) -> Bool) async throws {
        guard let name = DownloadID(id), let download = try await service.downloader.download(name) else {
            throw Unexpected(status: 0, text: "no such download")
        }
        for await snapshot in await download.snapshots where fits(snapshot) { return }
        throw Unexpected(status: 0, text: "never so: \((try? await download.snapshot.state) as Any)")
    }
}
