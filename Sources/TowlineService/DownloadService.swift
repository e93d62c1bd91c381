internal import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
package import Towline

/// Serves a downloader over HTTP, on a Unix socket and on TCP addresses.
package final class DownloadService: Sendable {
    /// The downloader that the service controls.
    package let downloader: Downloader
    /// The access token that clients over TCP must send.
    package let token: AccessToken
    /// The codes of sign-in links to the web page.
    package let signInCodes: SignInCodes
    private let socket: Mutex<SocketPlace>
    private let logger: Logger
    private let configuration: ServiceConfiguration
    private let listener: @Sendable (SocketPlace) -> Listener
    private let group: ServiceGroup
    private let readiness: Readiness
    private let feed: EventFeed
    private let settings: LiveSettings

    /// An address or a socket that the service listens on.
    package struct Endpoint: Hashable, Sendable {
        /// The configured address; `nil` for the Unix socket.
        package let address: ListenAddress?
        /// The TCP port in use; `nil` for the Unix socket.
        package let port: Int?
        /// The path of the Unix socket; `nil` for a TCP address.
        package var socket: String?
        /// URLs of the web page; empty for the Unix socket.
        package var pages: [String] {
            address.map { address in address.hosts.map { "http://\($0):\(port ?? address.port)/" } } ?? []
        }
    }

    /// URLs of the web page, for all addresses that listen so far.
    private final class Pages: Sendable {
        private let known = Mutex<[String]>([])

        var addresses: [String] { known.withLock(\.self) }
        func add(_ addresses: [String]) { known.withLock { $0 += addresses } }
    }

    /// Reports each listener that is ready or has failed.
    private final class Readiness: Sendable {
        let endpoints: AsyncStream<Result<Endpoint, TowlineError>>
        private let continuation: AsyncStream<Result<Endpoint, TowlineError>>.Continuation

        init() { (endpoints, continuation) = AsyncStream.makeStream() }

        func tell(_ endpoint: Result<Endpoint, TowlineError>) { continuation.yield(endpoint) }
        func end() { continuation.finish() }
    }

    /// Opens the list of downloads and resumes its downloads. The service does not listen before `run`.
    ///
    /// - Throws: the errors of `Downloader` (`registryBusy` if another process uses the state directory);
    ///   `diskPermission` and `unusableDestination` for directories that cannot be used.
    package static func open(_ configuration: ServiceConfiguration) async throws(TowlineError) -> DownloadService {
        let roots = try DownloadRoots(configuration.downloadsDirectories)
        var limits = Downloader.Configuration()
        limits.snapshotInterval = .seconds(configuration.eventInterval)
        limits.networkRetryInterval = .seconds(configuration.networkRetryInterval)
        limits.onTrouble = configuration.onTrouble
        limits.roots = roots.paths
        let downloader = try await Downloader(stateDirectory: configuration.stateDirectory, configuration: limits)
        do throws(TowlineError) {
            // Lock the list first: only the process that holds the lock may remove an old socket.
            if configuration.downloadsOrigin == .commandLine {
                try RememberedDirectories(in: configuration.stateDirectory.path)
                    .store(configuration.downloadsDirectories.map(\.path))
            }
            let token = try AccessToken(in: configuration.stateDirectory)
            let sessions = try SessionList(in: configuration.stateDirectory, for: token)
            let socket = try SocketPlace(configuration.socket, recordedIn: configuration.stateDirectory.path)
            return DownloadService(downloader, token, sessions, roots, socket, configuration)
        } catch {
            await downloader.close()
            throw error
        }
    }

    private init(
        _ downloader: Downloader, _ token: AccessToken, _ sessions: SessionList, _ roots: DownloadRoots,
        _ socket: SocketPlace, _ configuration: ServiceConfiguration
    ) {
        (self.downloader, self.token, self.configuration) = (downloader, token, configuration)
        self.socket = Mutex(socket)
        let codes = SignInCodes()
        signInCodes = codes
        var logger = Logger(label: "towd", factory: { StreamLogHandler.standardError(label: $0) })
        // Requests are not logged, because a URL may contain a password. Problems that concern the user are reported
        // separately.
        logger.logLevel = .critical
        self.logger = logger
        let readiness = Readiness()
        self.readiness = readiness
        let feed = EventFeed(downloader, interval: configuration.eventInterval)
        self.feed = feed
        let pages = Pages()
        let settings = LiveSettings(configuration)
        self.settings = settings
        let gate = Gate(token: token, sessions: sessions, settings: settings)
        let table = Self.table(downloader, token, sessions, codes, roots, feed, settings, configuration) {
            pages.addresses
        }
        let responder = table.router([ProblemMiddleware(), gate]).buildResponder()
        let listener = { @Sendable [logger] (place: SocketPlace) in
            Listener(
                .unixDomainSocket(path: place.binding), isOptional: place !== socket, responder, configuration, logger,
                onReady: { _ in
                    place.open()
                    readiness.tell(.success(Endpoint(address: nil, port: nil, socket: place.path)))
                }, onFailure: { readiness.tell(.failure(Self.failure(place.path, $0, Self.socketAdvice))) })
        }
        self.listener = listener
        var listeners = [listener(socket)]
        for address in configuration.addresses {
            listeners.append(
                Listener(
                    .hostname(address.host, port: address.port), isOptional: address.isOptional, responder,
                    configuration, logger,
                    onReady: { channel in
                        let port = channel.localAddress?.port ?? address.port
                        let endpoint = Endpoint(address: address, port: port)
                        pages.add(endpoint.pages)
                        readiness.tell(.success(endpoint))
                    },
                    onFailure: { error in
                        let place = "\(address.hostText):\(address.port)"
                        readiness.tell(.failure(Self.failure(place, error, Self.advice(address))))
                    }))
        }
        var group = ServiceGroupConfiguration(services: listeners, logger: logger)
        group.maximumGracefulShutdownDuration = .seconds(1)
        self.group = ServiceGroup(configuration: group)
    }

    static func table(
        _ downloader: Downloader, _ token: AccessToken, _ sessions: SessionList, _ codes: SignInCodes,
        _ roots: DownloadRoots, _ feed: EventFeed, _ settings: LiveSettings,
        _ configuration: ServiceConfiguration, pages: @escaping @Sendable () -> [String] = { [] }
    ) -> RouteTable {
        var table = RouteTable()
        DownloadRoutes(downloader: downloader, roots: roots, settings: settings)
            .add(to: &table)
        ContentRoutes(downloader: downloader, roots: roots, patience: configuration.contentPatience).add(to: &table)
        StatusRoutes(downloader: downloader, roots: roots, feed: feed, pages: pages).add(to: &table)
        SessionRoutes(token: token, sessions: sessions, codes: codes).add(to: &table)
        LinkRoutes().add(to: &table)
        EventRoutes(feed: feed).add(to: &table)
        MetricRoutes(downloader: downloader, feed: feed).add(to: &table)
        PageRoutes().add(to: &table)
        return table
    }

    private static func advice(_ address: ListenAddress) -> String {
        address.isOptional
            ? "towd runs without the web page. To get the page, start towd with --listen and a free HOST:PORT"
            : "towd needs this address and stops. Choose another address with --listen"
    }

    private static let socketAdvice = "towd needs this socket and stops. Choose another path with --socket"

    private static func failure(_ place: String, _ error: any Error, _ advice: String) -> TowlineError {
        let reason =
            switch error {
            case let error as IOError: String(cString: strerror(error.errnoCode))
            case let error as SocketAddressError.UnknownHost: "unknown host (\(error.errorDescription))"
            default: "\(error)"
            }
        let (safePlace, safeReason) = (TerminalSafeText.make(place), TerminalSafeText.make(reason))
        return TowlineError(.unusableDestination, "cannot listen on \(safePlace): \(safeReason). \(advice)")
    }

    /// The addresses that the service listens on, and those that failed, in order of time. Supports one reader.
    package var endpoints: AsyncStream<Result<Endpoint, TowlineError>> { readiness.endpoints }

    /// Serves requests until `stop`, and then closes the downloader. Active downloads resume at the next start.
    ///
    /// - Throws: an error if the service cannot listen on an address that is not optional.
    package func run() async throws {
        defer { readiness.end() }
        let keeper = Task { await keepSocket() }
        defer { keeper.cancel() }
        do {
            try await group.run()
        } catch {
            await downloader.close()
            socket.withLock(\.self).remove()
            throw error
        }
        socket.withLock(\.self).remove()
        await downloader.close()
    }

    /// Listens on a socket in the state directory if the socket was removed. A service that runs on after its user has
    /// logged out loses `XDG_RUNTIME_DIR`, and cannot create this directory again.
    private func keepSocket() async {
        let state = configuration.stateDirectory
        while (try? await Task.sleep(for: configuration.socketCheckInterval)) != nil {
            guard socket.withLock(\.isGone),
                let place = try? SocketPlace(state.appendingPathComponent("towd.sock"), recordedIn: state.path)
            else { continue }
            socket.withLock { $0 = place }
            await group.addServiceUnlessShutdown(listener(place))
        }
    }

    /// Takes over the names of the page and the clients that may download from private addresses. The other settings
    /// need a new start.
    package func reload(_ configuration: ServiceConfiguration) { settings.take(configuration) }

    /// Stops the service. Responses in progress have one second to complete.
    package func stop() async {
        // Close the event streams first: they never end, and the server waits for open responses.
        await feed.close()
        async let closed: Void = downloader.close()
        await group.triggerGracefulShutdown()
        await closed
    }
}
