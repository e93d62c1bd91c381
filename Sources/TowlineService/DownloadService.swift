internal import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
package import Towline

/// A downloader behind HTTP, on a Unix socket and addresses of TCP.
package final class DownloadService: Sendable {
    /// What is served.
    package let downloader: Downloader
    /// What a client over TCP must know.
    package let token: AccessToken
    private let socket: SocketPlace
    private let logger: Logger
    private let group: ServiceGroup
    private let readiness: Readiness
    private let feed: EventFeed

    /// Where it listens, once it does.
    package struct Place: Hashable, Sendable {
        /// The address as asked for; `nil`: the socket.
        package let address: ListenAddress?
        /// The port over TCP.
        package let port: Int?
        /// Where a browser finds the page; none: the socket.
        package var pages: [String] {
            address.map { address in address.hosts.map { "http://\($0):\(port ?? address.port)/" } } ?? []
        }
    }

    /// Where the page is, once something listens there.
    private final class Pages: Sendable {
        private let known = Mutex<[String]>([])

        var addresses: [String] { known.withLock(\.self) }
        func add(_ addresses: [String]) { known.withLock { $0 += addresses } }
    }

    /// Tells those who wait when something listens.
    private final class Readiness: Sendable {
        let places: AsyncStream<Result<Place, TowlineError>>
        private let continuation: AsyncStream<Result<Place, TowlineError>>.Continuation

        init() { (places, continuation) = AsyncStream.makeStream() }

        func tell(_ place: Result<Place, TowlineError>) { continuation.yield(place) }
        func end() { continuation.finish() }
    }

    /// Opens the list of downloads, which goes on at once. Nothing listens before `run`.
    ///
    /// - Throws: what `Downloader` throws (`registryBusy`: another process has the state directory); `diskPermission`
    ///   and `unusableDestination` for directories that cannot be used.
    package static func open(_ configuration: ServiceConfiguration) async throws(TowlineError) -> DownloadService {
        let roots = try DownloadRoots(configuration.downloadsDirectories)
        var limits = Configuration()
        limits.snapshotInterval = configuration.eventInterval
        limits.networkRetryInterval = configuration.networkRetryInterval
        limits.onTrouble = configuration.onTrouble
        let downloader = try await Downloader(stateDirectory: configuration.stateDirectory, configuration: limits)
        do throws(TowlineError) {
            // The list's lock comes first: whoever has it may take an old socket away.
            let token = try AccessToken(in: configuration.stateDirectory)
            let socket = try SocketPlace(configuration.socket)
            return DownloadService(downloader, token, roots, socket, configuration)
        } catch {
            await downloader.close()
            throw error
        }
    }

    private init(
        _ downloader: Downloader, _ token: AccessToken, _ roots: DownloadRoots, _ socket: SocketPlace,
        _ configuration: ServiceConfiguration
    ) {
        self.downloader = downloader
        self.socket = socket
        self.token = token
        var logger = Logger(label: "towd", factory: { StreamLogHandler.standardError(label: $0) })
        // Requests are not logged: a link may hold a password. What goes wrong in a way that concerns the user is told in
        // our words.
        logger.logLevel = .critical
        self.logger = logger
        let readiness = Readiness()
        self.readiness = readiness
        let feed = EventFeed(downloader, interval: configuration.eventInterval)
        self.feed = feed
        let pages = Pages()
        let responder = Self.table(downloader, token, roots, feed, configuration) { pages.addresses }
            .router([ProblemMiddleware(), Gate(token: token, hosts: HostList(configuration))])
            .buildResponder()
        let path = configuration.socket.path
        var listeners = [
            Listener(
                .unixDomainSocket(path: socket.binding), isOptional: false, responder, configuration, logger,
                onReady: { _ in
                    socket.open()
                    readiness.tell(.success(Place(address: nil, port: nil)))
                }, onFailure: { readiness.tell(.failure(Self.failure(path, $0))) })
        ]
        for address in configuration.addresses {
            listeners.append(
                Listener(
                    .hostname(address.host, port: address.port), isOptional: address.isOptional, responder,
                    configuration, logger,
                    onReady: { channel in
                        let port = channel.localAddress?.port ?? address.port
                        let place = Place(address: address, port: port)
                        pages.add(place.pages)
                        readiness.tell(.success(place))
                    },
                    onFailure: { readiness.tell(.failure(Self.failure("\(address.hostText):\(address.port)", $0))) }))
        }
        var group = ServiceGroupConfiguration(services: listeners, logger: logger)
        group.maximumGracefulShutdownDuration = .seconds(1)
        self.group = ServiceGroup(configuration: group)
    }

    /// All that can be asked.
    static func table(
        _ downloader: Downloader, _ token: AccessToken, _ roots: DownloadRoots, _ feed: EventFeed,
        _ configuration: ServiceConfiguration, pages: @escaping @Sendable () -> [String] = { [] }
    ) -> RouteTable {
        var table = RouteTable()
        DownloadRoutes(downloader: downloader, roots: roots, privateAddresses: configuration.privateAddresses)
            .add(to: &table)
        ContentRoutes(downloader: downloader, roots: roots, patience: configuration.contentPatience).add(to: &table)
        StatusRoutes(downloader: downloader, roots: roots, token: token, feed: feed, pages: pages).add(to: &table)
        EventRoutes(feed: feed).add(to: &table)
        MetricRoutes(downloader: downloader, feed: feed).add(to: &table)
        PageRoutes().add(to: &table)
        return table
    }

    private static func failure(_ place: String, _ error: any Error) -> TowlineError {
        let reason = (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
        return TowlineError(
            .unusableDestination, "cannot listen at \(TerminalSafeText.make(place)): \(TerminalSafeText.make(reason))")
    }

    /// Where it listens and where it cannot, as that becomes known; for one reader.
    package var places: AsyncStream<Result<Place, TowlineError>> { readiness.places }

    /// Serves until `stop`, and then closes the downloader: what was under way goes on at the next start.
    ///
    /// - Throws: if an address that is not optional cannot be had.
    package func run() async throws {
        defer { readiness.end() }
        do {
            try await group.run()
        } catch {
            await downloader.close()
            socket.remove()
            throw error
        }
        socket.remove()
        await downloader.close()
    }

    /// Ends it soon. Answers that are under way have a second.
    package func stop() async {
        // A stream of events has no end of its own, and servers wait for what is under way.
        await feed.close()
        async let closed: Void = downloader.close()
        await group.triggerGracefulShutdown()
        await closed
    }
}
