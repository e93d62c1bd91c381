import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A server of files whose bytes are a function of seed and offset. The server answers correctly or with named
/// faults, logs the requests, and runs until ``stop()``.
package final class FaultServer: Sendable {
    /// The listening socket and the open connections.
    private struct Sockets {
        var listener: (any Channel)?
        /// The reservation of the port, until the server stops.
        var reservation: PortReservation?
        var connections: [Int: (channel: any Channel, task: Task<Void, Never>)] = [:]
        var isStopped = false
    }

    /// The port that the server listens on.
    package let port: Int
    /// The log of connections and requests.
    package let log: ServerLog
    let directory: ResourceDirectory
    let options: ServerOptions
    let sharedPacer: SharedPacer?

    private let tls: NIOSSLContext?
    private let state = Mutex(Sockets())

    /// Starts a server for resources by path. A path that ends in `*` matches every path with this prefix.
    ///
    /// Throws an `IOError` if the address is taken, a `NIOSSLError` if the certificate cannot be used.
    package static func start(
        _ resources: [String: Resource], options: ServerOptions = ServerOptions()
    ) async throws -> FaultServer {
        let starting = ConnectionIntake()
        let tls = try options.tls.map { try $0.context(http2: options.http2) }
        let reservation = try PortReservation(host: options.host, port: options.port)
        let listener = try await listen(options, port: reservation.port, tls: tls, intake: starting)
        let server = FaultServer(resources, options: options, reservation: reservation, tls: tls, listener: listener)
        starting.begin { server.serve($0, $1) }
        return server
    }

    private init(
        _ resources: [String: Resource], options: ServerOptions, reservation: PortReservation, tls: NIOSSLContext?,
        listener: any Channel
    ) {
        port = reservation.port
        self.options = options
        self.tls = tls
        log = ServerLog(file: options.logFile)
        directory = ResourceDirectory(resources)
        sharedPacer = options.sharedRate.map(SharedPacer.init)
        state.withLock { state in
            state.listener = listener
            state.reservation = reservation
        }
    }

    /// Returns the URL of a target on this server.
    package func url(_ target: String) -> String {
        let host = options.host.contains(":") ? "[\(options.host)]" : options.host
        return "\(options.tls == nil ? "http" : "https")://\(host):\(port)\(target)"
    }

    /// Replaces the version of a resource for future requests ("the file changes on the server"). Responses that
    /// have begun continue with the bytes of their version.
    package func replace(_ path: String, with version: Version) { directory.find(path)?.replace(with: version) }

    /// Replaces the behaviour of a path for future requests.
    package func set(_ behaviour: Behaviour, for path: String) { directory.find(path)?.set(behaviour) }

    /// Returns the current version of a resource; `nil` if the path has no resource.
    package func version(_ path: String) -> Version? { directory.find(path)?.version }

    /// Removes the limit `sharedRate`. A test needs the limit only until it has killed the downloading process.
    package func liftSharedRate() { sharedPacer?.lift() }

    /// Stops listening, so that the system refuses connections. Open connections continue. The port stays reserved.
    package func refuseConnections() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        if let listener { try? await PrivateSocket.stopListening(listener).get() }
    }

    /// Listens again on the same port, after ``refuseConnections()``. Throws an `IOError` after ``stop()`` if another
    /// process has taken the port.
    package func acceptConnections() async throws {
        let intake = ConnectionIntake()
        let listener = try await FaultServer.listen(options, port: port, tls: tls, intake: intake)
        state.withLock { $0.listener = listener }
        intake.begin { self.serve($0, $1) }
    }

    /// Closes all open connections, with RST or normally.
    package func closeConnections(reset: Bool) async {
        for channel in state.withLock({ $0.connections.values.map(\.channel) }) {
            await SocketEnd.close(channel, reset: reset)
        }
    }

    /// Closes the listener and all connections. Returns after all tasks have ended; the log stays readable.
    package func stop() async {
        await refuseConnections()
        let connections = state.withLock { state in
            state.isStopped = true
            state.reservation = nil
            return Array(state.connections.values)
        }
        for connection in connections {
            connection.task.cancel()
            await SocketEnd.close(connection.channel, reset: false)
        }
        for connection in connections { await connection.task.value }
    }

    private func serve(_ channel: any Channel, _ inbound: Inbound) {
        let number = log.accepted()
        let connection = Connection(server: self, channel: channel, inbound: inbound, number: number)
        state.withLock { state in
            let task = Task {
                await connection.run()
                self.log.closed(connection: number)
                _ = self.state.withLock { $0.connections.removeValue(forKey: number) }
            }
            if state.isStopped { task.cancel() }
            state.connections[number] = (channel, task)
        }
    }

    private static func listen(
        _ options: ServerOptions, port: Int, tls: NIOSSLContext?, intake: ConnectionIntake
    ) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 4096)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try PrivateSocket.keep(channel)
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(SocketEnd())
                    if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                    try pipeline.addHandler(InboundHandler(intake: intake))
                }
            }
            .withBoundSocket(PrivateSocket.bound(host: options.host, port: port)).get()
    }
}

extension ServerOptions.TLS {
    fileprivate func context(http2: Bool) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMFile(certificateChain).map { NIOSSLCertificateSource.certificate($0) }
        let key = try NIOSSLPrivateKey(file: privateKey, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain, privateKey: .privateKey(key))
        configuration.applicationProtocols = http2 ? ["h2", "http/1.1"] : ["http/1.1"]
        if onlyOldVersions {
            configuration.minimumTLSVersion = .tlsv1
            configuration.maximumTLSVersion = .tlsv11
        }
        return try NIOSSLContext(configuration: configuration)
    }
}
